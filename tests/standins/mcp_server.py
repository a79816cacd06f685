"""An MCP server over stdio, in the standard library alone, that behaves as well or as badly as it is told.

`command(tools=[…], unknown="exit")` is the command line of one. The scenario's keys:

- `tools`: their definitions, `tools_file`: a JSON file of them read at each start; without both, `TOOLS`.
- `answers`: {tool: the result of its calls}; a tool that stands neither there nor below says its arguments.
- `eras`: "legacy", "modern" or "both". `unknown`: "error", "ignore" or "exit" at a method that it has not.
- `page`: tools on a page; `cursor`: "endless" (always a new one) or "loop" (always the same).
- `silent`: methods that are never answered. `seconds`: before it reads anything; `busy`: those that it
  computes meanwhile, as real ones do for their imports.
- `starts`: a file that gets a line with its process id at each start. `dies`: the starts (the first is 1) at
  which it ends, after `stderr`. `awaits`: the number of starts that it waits for.
- `stderr`: said at the start. `garbage`: lines of nonsense at the start. `lingers`: seconds after the end of
  its input.
"""

import base64
import itertools
import json
import os
import subprocess
import sys
import threading
import time

LATEST, MODERN = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"


def command(**scenario):
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), json.dumps(scenario)]


def tool(name, description="", properties=None, **more):
    schema = {"type": "object", "properties": properties or {}}
    return {"name": name, "description": description or f"does {name}", "inputSchema": schema, **more}


_NUMBER, _TEXT = {"type": "number"}, {"type": "string"}
TOOLS = [
    tool("echo", "says its arguments", {"text": _TEXT}),
    tool("add", "adds two numbers", {"a": _NUMBER, "b": _NUMBER}, annotations={"readOnlyHint": True}),
]
KNOWN = {
    "add": "a + b, as structured content too",
    "environment": "its environment as JSON",
    "pid": "its process id",
    "cwd": "its folder",
    "crash": "ends in the middle of the call; with `file` only if that does not exist yet",
    "hang": "never answers; makes `file` first",
    "freeze": "never answers, nor does anything after it",
    "slow": "answers after `seconds`",
    "steps": "`count` notices of progress, `seconds` apart",
    "flood": "`megabytes` of a line without end, then its answer",
    "rubbish": "`megabytes` of lines that are no messages, then its answer",
    "big": "an answer of `megabytes`",
    "fail": "a result with isError",
    "refuse": "a JSON-RPC error",
    "image": "an image of one pixel",
    "grow": "adds the tool `name` with `description`, or replaces it, and says that its list changed",
    "ask": "asks the client with `method` and says what it answered",
    "cancelled": "the requests that were cancelled",
    "grandchild": "starts a process in a session of its own that sleeps, says its id",
    "mutter": "says `text` on stderr",
    "pester": "asks `count` times whether the client is there, and reads nothing any more",
    "chatter": "`count` messages that say nothing, then its answer",
    "broken": "a result that is none",
    "require": "a result that asks for input (2026-07-28)",
}
"""What a tool of that name does, whatever its definition says."""

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c63f8cfc0f01f0005000180fe7dd0bd0000000049454e44ae426082"
    )
).decode()


class Server:
    def __init__(self, scenario):
        self.scenario = scenario
        self.eras = scenario.get("eras", "legacy")
        self.tools = scenario.get("tools", TOOLS)
        if "tools_file" in scenario:
            with open(scenario["tools_file"]) as file:
                self.tools = json.load(file)
        self.writing = threading.Lock()
        self.ids = itertools.count(1)
        self.asked = {}
        self.cancelled = []
        self.listening = []
        self.pages = itertools.count(1)
        self.frozen = self.deaf = False

    def run(self):
        time.sleep(self.scenario.get("seconds", 0))
        while time.process_time() < self.scenario.get("busy", 0):
            pass
        self.mutter(self.scenario.get("stderr", ""))
        if self.starts() in self.scenario.get("dies", ()):
            os._exit(3)
        while "awaits" in self.scenario and self.scenario["awaits"] > self.counted():
            time.sleep(0.01)
        for number in range(self.scenario.get("garbage", 0)):
            self.write(f"starting … {number}\n")
        for line in sys.stdin.buffer:
            if line.strip():
                self.take(json.loads(line))
            while self.deaf:
                time.sleep(1)
        time.sleep(self.scenario.get("lingers", 0))

    def starts(self):
        if "starts" not in self.scenario:
            return 0
        with open(self.scenario["starts"], "a") as file:
            file.write(f"{os.getpid()}\n")
        return self.counted()

    def counted(self):
        with open(self.scenario["starts"]) as file:
            return len(file.readlines())

    def take(self, message):
        method, number = message.get("method"), message.get("id")
        params = message.get("params") or {}
        if method is None:
            self.asked.pop(number)(message.get("result", message.get("error")))
        elif self.frozen or method in self.scenario.get("silent", ()):
            return
        elif method == "notifications/cancelled":
            self.cancelled.append(params.get("requestId"))
        elif number is None:
            return
        elif method == "tools/call":
            threading.Thread(target=self.call, args=(number, params), daemon=True).start()
        else:
            self.respond(number, method, params)

    def respond(self, number, method, params):
        is_modern = META + "protocolVersion" in params.get("_meta", {})
        if method == "initialize" and self.eras != "modern":
            version = params["protocolVersion"]
            info = {"name": "stand-in", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            self.answer(number, protocolVersion=version, capabilities=capabilities, serverInfo=info)
        elif method == "initialize":
            self.refuse(number, -32022, "unsupported protocol version", {"supported": [MODERN]})
        elif method == "server/discover" and self.eras != "legacy":
            capabilities = {"tools": {"listChanged": True}}
            self.answer(number, **_complete(), supportedVersions=[MODERN], capabilities=capabilities)
        elif method == "subscriptions/listen" and self.eras != "legacy":
            self.listening.append(number)
            accepted = {"notifications": params["notifications"]}
            self.notify("notifications/subscriptions/acknowledged", **accepted, **_about(number))
        elif method == "tools/list":
            self.answer(number, **(_complete() if is_modern else {}), **self.page(params))
        elif method == "ping":
            self.answer(number)
        elif self.scenario.get("unknown") == "exit":
            os._exit(4)
        elif self.scenario.get("unknown") != "ignore":
            self.refuse(number, -32601, f"unknown method {method}")

    def page(self, params):
        size = self.scenario.get("page", len(self.tools) or 1)
        if kind := self.scenario.get("cursor"):
            turn = next(self.pages)
            listed = [tool(f"turn{turn}")]
            return {"tools": listed, "nextCursor": str(turn) if kind == "endless" else "again"}
        start = int(params.get("cursor") or 0)
        rest = {"nextCursor": str(start + size)} if start + size < len(self.tools) else {}
        return {"tools": self.tools[start : start + size], **rest}

    def call(self, number, params):
        name, given = params["name"], params.get("arguments") or {}
        is_modern = META + "protocolVersion" in params.get("_meta", {})
        try:
            result = self.result(name, given, params.get("_meta", {}).get("progressToken"))
        except LookupError as error:
            self.refuse(number, -32602, str(error))
            return
        if result is not None:
            self.answer(number, **({"resultType": "complete"} if is_modern else {}) | result)

    def result(self, name, given, token):
        if name in self.scenario.get("answers", {}):
            return self.scenario["answers"][name]
        match name:
            case "add":
                total = given["a"] + given["b"]
                return {**_text(str(total)), "structuredContent": {"sum": total}}
            case "environment":
                return _text(json.dumps(dict(os.environ)))
            case "pid":
                return _text(str(os.getpid()))
            case "cwd":
                return _text(os.getcwd())
            case "crash":
                if not os.path.exists(given.get("file", "")):
                    if given.get("file"):
                        open(given["file"], "w").close()
                    os._exit(5)
            case "hang":
                if given.get("file"):
                    open(given["file"], "w").close()
                return None
            case "freeze":
                self.frozen = True
                return None
            case "slow":
                time.sleep(given["seconds"])
            case "steps":
                for step in range(given["count"]):
                    time.sleep(given["seconds"])
                    if token is not None:
                        self.notify("notifications/progress", progressToken=token, progress=step + 1)
            case "flood":
                for _ in range(given["megabytes"]):
                    self.write("x" * 2**20)
                self.write("\n")
            case "rubbish":
                for _ in range(given["megabytes"] * 1024):
                    self.write("x" * 1023 + "\n")
            case "big":
                return _text("x" * int(given["megabytes"] * 2**20))
            case "fail":
                return {**_text(given.get("text", "it did not work")), "isError": True}
            case "refuse":
                raise LookupError(given.get("text", "not like that"))
            case "image":
                return {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}
            case "grow":
                new = tool(given["name"], given.get("description", ""))
                self.tools = [one for one in self.tools if one["name"] != new["name"]] + [new]
                for number in self.listening or (None,):
                    about = {} if number is None else _about(number)
                    self.notify("notifications/tools/list_changed", **about)
            case "ask":
                return _text(json.dumps(self.ask(given["method"], given.get("params", {}))))
            case "cancelled":
                return _text(json.dumps(self.cancelled))
            case "grandchild":
                asleep = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
                return _text(str(subprocess.Popen(asleep, start_new_session=True).pid))
            case "mutter":
                self.mutter(given["text"])
            case "pester":
                self.deaf = True
                for number in range(given["count"]):
                    self.send({"id": f"{number}" * 1000, "method": "ping"})
            case "chatter":
                for _ in range(given["count"]):
                    self.notify("notifications/message", level="info", data="x")
            case "broken":
                return {"content": "this is no list", "isError": "neither"}
            case "require":
                form = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
                asked = {"who": {"method": "elicitation/create", "params": {"mode": "form", **form}}}
                return {"resultType": "input_required", "inputRequests": asked, "requestState": "there"}
        return _text(json.dumps(given))

    def ask(self, method, params):
        number, answers, came = f"ours-{next(self.ids)}", [], threading.Event()
        self.asked[number] = lambda answer: (answers.append(answer), came.set())
        self.send({"id": number, "method": method, "params": params})
        came.wait(10)
        return answers[0] if answers else None

    def answer(self, number, **result):
        self.send({"id": number, "result": result})

    def refuse(self, number, code, text, data=None):
        self.send({"id": number, "error": {"code": code, "message": text, "data": data}})

    def notify(self, method, **params):
        self.send({"method": method, "params": params})

    def send(self, message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def write(self, text):
        with self.writing:
            sys.stdout.write(text)
            sys.stdout.flush()

    @staticmethod
    def mutter(text):
        if text:
            print(text, file=sys.stderr, flush=True)


def _complete():
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def _about(number):
    return {"_meta": {META + "subscriptionId": number}}


def _text(text):
    return {"content": [{"type": "text", "text": text}]}


if __name__ == "__main__":
    Server(json.loads(sys.argv[1])).run()
