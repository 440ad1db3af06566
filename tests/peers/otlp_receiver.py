"""A collector that decodes what it gets with the official protobufs of OpenTelemetry.

Prints its port, and writes each request as one line of JSON to the file that its argument names:
`{"path": …, "headers": …, "message": …}`. A request with a field that the protobufs do not know is refused.
"""

import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from google.protobuf.json_format import MessageToDict
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

MESSAGES = {
    "/v1/traces": (ExportTraceServiceRequest, ExportTraceServiceResponse),
    "/v1/metrics": (ExportMetricsServiceRequest, ExportMetricsServiceResponse),
    "/v1/logs": (ExportLogsServiceRequest, ExportLogsServiceResponse),
}


def unknown_fields(message):
    """The number of fields that the protobufs do not know, in the message and below it."""
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            parts = value if field.is_repeated else [value]
            count += sum(unknown_fields(part) for part in parts)
    return count


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = Lock()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        request, response = MESSAGES[self.path]
        message = request.FromString(body)
        unknown = unknown_fields(message)
        row = {
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "unknown": unknown,
            "message": MessageToDict(message),
        }
        with self.lock, open(sys.argv[1], "a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")
        answer = response().SerializeToString()
        self.send_response(400 if unknown else 200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_address[1], flush=True)
server.serve_forever()
