# Receives the webhooks of Rail: gem install webrick; RAIL_WEBHOOK_SECRET=whsec_… PORT=4000 ruby receiver.rb
require "json"
require "openssl"
require "webrick"

# One for each endpoint, separated by commas.
SECRETS = ENV.fetch("RAIL_WEBHOOK_SECRET").split(",")
TOLERANCE_S = 300
# Ids of events that were handled. Keep them in your database, in the transaction that handles the event.
HANDLED = {}

# Whether `Rail-Signature: t=…,v1=…[,v1=…]` signs this body, by the clock of this machine.
def signed?(header, body)
  parts = header.to_s.split(",").map { |part| part.split("=", 2) }
  sent_at = parts.assoc("t")&.last.to_s
  return false unless sent_at.match?(/\A\d+\z/) && (Time.now.to_i - sent_at.to_i).abs <= TOLERANCE_S

  expected = SECRETS.map { |secret| OpenSSL::HMAC.hexdigest("SHA256", secret, "#{sent_at}.".b + body) }
  parts.any? do |name, value|
    name == "v1" && expected.any? { |each| OpenSSL.secure_compare(value.to_s, each) }
  end
end

server = WEBrick::HTTPServer.new(
  BindAddress: "127.0.0.1", Port: ENV.fetch("PORT", "4000").to_i, AccessLog: [], Logger: WEBrick::Log.new(File::NULL)
)
server.mount_proc "/" do |request, response|
  body = request.body.to_s.b # exactly as it was sent: never parse and serialize it before it is verified
  if signed?(request["Rail-Signature"], body)
    event = JSON.parse(body)
    unless HANDLED.key?(event["id"])
      puts "#{event["type"]} #{event["id"]}"
      $stdout.flush
      HANDLED[event["id"]] = true
    end
    response.status = 204 # within ten seconds: leave long work to a job
  else
    response.status = 400
  end
end
trap("TERM") { server.shutdown }
server.start
