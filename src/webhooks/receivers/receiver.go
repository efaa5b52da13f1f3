// Receives the webhooks of Rail: RAIL_WEBHOOK_SECRET=whsec_… PORT=4000 go run receiver.go
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const tolerance = 5 * time.Minute

// One for each endpoint, separated by commas.
var secrets = strings.Split(os.Getenv("RAIL_WEBHOOK_SECRET"), ",")

// Ids of events that were handled. Keep them in your database, in the transaction that handles the event.
var handled sync.Map

// isSigned tells whether `Rail-Signature: t=…,v1=…[,v1=…]` signs this body, by the clock of this machine.
func isSigned(header string, body []byte) bool {
	var sentAt string
	var signatures [][]byte
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(part, "=")
		if name == "t" {
			sentAt = value
		}
		if signature, err := hex.DecodeString(value); name == "v1" && err == nil {
			signatures = append(signatures, signature)
		}
	}
	seconds, err := strconv.ParseInt(sentAt, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(sentAt + "."))
		mac.Write(body)
		expected := mac.Sum(nil)
		for _, signature := range signatures {
			if hmac.Equal(signature, expected) {
				return true
			}
		}
	}
	return false
}

func receive(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body) // exactly as it was sent: never parse and serialize it before it is verified
	if err != nil || !isSigned(request.Header.Get("Rail-Signature"), body) {
		response.WriteHeader(http.StatusBadRequest)
		return
	}
	var event struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}
	if json.Unmarshal(body, &event) != nil {
		response.WriteHeader(http.StatusBadRequest)
		return
	}
	if _, known := handled.LoadOrStore(event.ID, true); !known {
		fmt.Println(event.Type, event.ID)
	}
	response.WriteHeader(http.StatusNoContent) // within ten seconds: leave long work to a job
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "4000"
	}
	http.HandleFunc("/", receive)
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+port, nil))
	os.Exit(1)
}
