"""Traces of turns reach an OpenTelemetry collector, with the conventions for generative AI and no words."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.world import wait_for


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """A collector's address, and the bodies that it was sent."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()


@pytest.mark.slow
def test_a_turn_is_exported_with_its_model_and_tool_calls(make_world: Any, collector: Any) -> None:
    url, bodies = collector
    told = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "100"}
    told |= {"OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
    _, graph = make_world(**told)
    graph.say("p0", "note: buy bread at seven")
    graph.reply("p0")
    wait_for(lambda: bodies, "the traces")
    spans = [
        span
        for body in bodies
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    names = [span.name for span in spans]
    assert names.count("chat offline") == 3  # to choose the tools, to call one, to answer
    assert {"execute_tool save_note", "invoke_agent recado", "wait", "send"} <= set(names)
    turn = next(span for span in spans if span.name == "invoke_agent recado")
    assert all(span.parent_span_id == turn.span_id for span in spans if span is not turn)
    assert all(turn.start_time_unix_nano <= one.start_time_unix_nano for one in spans)
    assert b"bread" not in b"".join(bodies)
