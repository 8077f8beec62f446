"""Receives one webhook and verifies its signature with the library `standardwebhooks`.

    pip install -r requirements.txt
    WEBHOOK_KEY=whsec_… python receive.py
"""

import http.server
import os

from standardwebhooks.webhooks import Webhook


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        # Raises an error if the signature is wrong or the timestamp is not of these five minutes.
        message = Webhook(os.environ["WEBHOOK_KEY"]).verify(body, headers)
        print(f"{headers['webhook-id']}: {message['data']['headline']}", flush=True)
        self.send_response(204)
        self.end_headers()


server = http.server.HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8090"))), Receiver)
print(f"waits for a webhook on port {server.server_port}", flush=True)
server.handle_request()
