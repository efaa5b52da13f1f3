# Receives the webhooks of Rail: RAIL_WEBHOOK_SECRET=whsec_… PORT=4000 python3 receiver.py
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# One for each endpoint, separated by commas.
SECRETS = os.environ["RAIL_WEBHOOK_SECRET"].split(",")
TOLERANCE_S = 300
# Ids of events that were handled. Keep them in your database, in the transaction that handles the event.
handled = set()


def is_signed(header, body):
    """Whether `Rail-Signature: t=…,v1=…[,v1=…]` signs this body, by the clock of this machine."""
    parts = [part.partition("=")[::2] for part in (header or "").split(",")]
    sent_at = next((value for name, value in parts if name == "t"), "")
    if not sent_at.isdecimal() or abs(time.time() - int(sent_at)) > TOLERANCE_S:
        return False
    signed = sent_at.encode() + b"." + body
    expected = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in SECRETS]
    return any(
        hmac.compare_digest(value.encode(), each.encode()) for name, value in parts if name == "v1" for each in expected
    )


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        # Exactly as it was sent: never parse and serialize it before it is verified.
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not is_signed(self.headers.get("Rail-Signature"), body):
            return self.answer(400)
        event = json.loads(body)
        if event["id"] not in handled:
            print(event["type"], event["id"], flush=True)
            handled.add(event["id"])
        self.answer(204)  # within ten seconds: leave long work to a job

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 4000))), Receiver).serve_forever()
