"""Inside a host: loads one model class and serves requests to it as plain data.

The same code sits in a Ray actor and in the inline executor. It runs in the model's own environment, so: Python 3.9,
the standard library, torus_ray.heads and torus_ray.audio. Whatever an adapter raises is caught here and leaves as
{kind, message, traceback, stderr_tail}: an exception class of one environment cannot be read in another.
"""

from __future__ import annotations

import importlib
import inspect
import os
import platform
import re
import sys
import time
import traceback
import types
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from torus_ray import heads
from torus_ray.audio import BadClip

STDERR_TAIL_BYTES = 4_000
_VERSIONED = ("numpy", "torch", "transformers", "diffusers", "vllm", "onnxruntime", "ctranslate2", "soundfile", "soxr")


_REPLY_TYPES: Dict[str, Any] = {
    "generate": heads.RenderReply,
    "edit": heads.RenderReply,
    "caption": heads.CaptionReply,
    "answer": heads.AnswerReply,
    "measure": heads.MeasureReply,
}


class BadReply(Exception):
    """The adapter broke its contract: too few replies, replies out of order, something that is no reply."""


def load_class(folder: str, module: str, class_name: str) -> Any:
    """The class in `folder`/`module`.py. The folder is taken as a package, so that its modules may import each other
    relatively; it is also put last on the path, for siblings imported by their bare names."""
    package = "torus_adapter_" + re.sub(r"\W", "_", str(Path(folder).resolve()))
    if package not in sys.modules:
        holder = types.ModuleType(package)
        holder.__path__ = [str(folder)]
        sys.modules[package] = holder
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    loaded = importlib.import_module("%s.%s" % (package, module))
    try:
        return getattr(loaded, class_name)
    except AttributeError:
        raise ImportError("%s/%s.py has no class %s" % (folder, module, class_name)) from None


class HeadServer:
    """One loaded model. devices: the GPUs that it was given, by index or UUID, as `attempts` name them.

    payload: {folder, module, class_name, settings, heads: {operation: settings}, style, host: {device, threads,
    gpu_share, weights}, bits}. Raises whatever the class raises while it loads.
    """

    def __init__(self, payload: Mapping[str, Any], devices: Sequence[str] = ()) -> None:
        self.bits = int(payload["bits"])
        self.device = ":".join([str(payload["host"]["device"]), ",".join(devices)]).rstrip(":")
        cls = load_class(payload["folder"], payload["module"], payload["class_name"])
        settings = dict(payload["settings"])
        settings.update({operation: values for operation, values in payload["heads"].items() if values})
        self.model = cls(**settings)
        have = heads.operations_of(self.model)
        missing = [operation for operation in payload["heads"] if operation not in have]
        if missing:
            raise TypeError(
                "the card says that %s serves %s, the class has %s"
                % (payload["class_name"], ", ".join(missing), ", ".join(have) or "none")
            )
        style = getattr(self.model, "style", "batch")
        if style != payload["style"]:
            raise TypeError(
                "the card says style %r, the class %s says %r" % (payload["style"], payload["class_name"], style)
            )
        load = getattr(self.model, "load", None)
        if callable(load):
            load(heads.Host(**payload["host"]))

    def describe(self) -> Dict[str, Any]:
        """What the model declares and where it runs."""
        model = self.model
        return {
            "operations": heads.operations_of(model),
            "style": getattr(model, "style", "batch"),
            "max_batch": {str(k): int(v) for k, v in dict(getattr(model, "max_batch", {})).items()},
            "max_in_flight": int(getattr(model, "max_in_flight", 8)),
            "batch_invariant": bool(getattr(model, "batch_invariant", False)),
            "observed": dict(model.observe()) if callable(getattr(model, "observe", None)) else {},
            "python": platform.python_version(),
            "versions": _versions(),
            "pid": os.getpid(),
            "node": platform.node(),
            "device": self.device,
        }

    def handle(self, operation: str, wires: List[Dict[str, Any]]) -> Dict[str, Any]:
        """Replies to a batch. {results: one {status, ...} a request} or {error: {...}} where the batch raised as a
        whole."""
        started, cpu = time.time(), time.process_time()
        try:
            requests = [heads.request_from_wire(wire) for wire in wires]
            replies = getattr(self.model, operation)(requests)
            answer: Dict[str, Any] = {"results": self._results(requests, replies)}
        except heads.Refused as refusal:
            answer = self._refused(refusal, len(wires))
        except heads.HeadStop as stop:
            answer = {"error": describe_error(stop), "stop": dict(stop.told)}
        except (Exception, SystemExit) as error:  # a library that wants to leave must not take the host with it
            answer = {"error": describe_error(error)}
        return self._timed(answer, started, cpu)

    async def handle_async(self, operation: str, wires: List[Dict[str, Any]]) -> Dict[str, Any]:
        """The same for a model of coroutines: one request a call."""
        started, cpu = time.time(), time.process_time()
        try:
            requests = [heads.request_from_wire(wire) for wire in wires]
            replies = [await getattr(self.model, operation)(request) for request in requests]
            answer: Dict[str, Any] = {"results": self._results(requests, replies)}
        except heads.Refused as refusal:
            answer = self._refused(refusal, len(wires))
        except heads.HeadStop as stop:
            answer = {"error": describe_error(stop), "stop": dict(stop.told)}
        except (Exception, SystemExit) as error:  # a library that wants to leave must not take the host with it
            answer = {"error": describe_error(error)}
        return self._timed(answer, started, cpu)

    def close(self) -> None:
        close = getattr(self.model, "close", None)
        if callable(close):
            close()

    def _results(self, requests: List[Any], replies: Any) -> List[Dict[str, Any]]:
        if inspect.iscoroutine(replies):
            replies.close()
            raise BadReply("the method is a coroutine, but the class says style = 'batch'; expected style = 'async'")
        if not isinstance(replies, (list, tuple)):
            raise BadReply(
                "the method returned %s; expected a list of replies made by request.reply(...)" % type(replies).__name__
            )
        if len(replies) != len(requests):
            raise BadReply(
                "%d replies to %d requests; expected one for each, in the same order" % (len(replies), len(requests))
            )
        results = []
        for request, reply in zip(requests, replies):
            if getattr(reply, "id", None) is None:
                raise BadReply("got %s for a reply; expected what request.reply(...) returns" % type(reply).__name__)
            wanted = _REPLY_TYPES[request.operation]
            if not isinstance(reply, wanted):
                raise BadReply(
                    "got a %s for a request to %s; expected a %s, as request.reply(...) returns it"
                    % (type(reply).__name__, request.operation, wanted.__name__)
                )
            if reply.id != request.id:
                raise BadReply(
                    "replies out of order: the one in the place of request %s is for %s" % (request.id, reply.id)
                )
            if request.operation == "answer" and len(reply.texts) != len(request.questions):
                raise BadReply(
                    "%d answers to %d questions; expected one text for each"
                    % (len(reply.texts), len(request.questions))
                )
            results.append(self._result(reply))
        return results

    def _result(self, reply: Any) -> Dict[str, Any]:
        try:
            return {"status": "ok", "reply": heads.reply_to_wire(reply, self.bits)}
        except BadClip as error:
            return {"status": "failed", "reason": error.reason, "kind": "BadClip", "message": str(error)}

    def _refused(self, refusal: heads.Refused, count: int) -> Dict[str, Any]:
        if count > 1:  # whose it is shows when the batch is split
            return {"error": {"kind": "Refused", "message": str(refusal), "traceback": "", "stderr_tail": ""}}
        return {"results": [{"status": "refused", "reason": refusal.reason, "message": str(refusal)}]}

    def _timed(self, answer: Dict[str, Any], started: float, cpu: float) -> Dict[str, Any]:
        answer.update(started_at=started, ended_at=time.time(), cpu_s=time.process_time() - cpu, pid=os.getpid())
        return answer


def describe_error(error: BaseException) -> Dict[str, Any]:
    """An exception as plain data, with the last lines that the process wrote to stderr."""
    return {
        "kind": type(error).__name__,
        "message": str(error)[:2_000],
        "traceback": "".join(traceback.format_exception(type(error), error, error.__traceback__))[-8_000:],
        "stderr_tail": stderr_tail(),
    }


def stderr_tail() -> str:
    """The end of this process's stderr where it goes to a file (as a Ray worker's does); empty elsewhere."""
    try:
        sys.stderr.flush()
        path = os.readlink("/proc/self/fd/2")
        if not os.path.isfile(path):
            return ""
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - STDERR_TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _versions() -> Dict[str, str]:
    found: Dict[str, str] = {}
    for name in _VERSIONED:
        version: Optional[str] = getattr(sys.modules.get(name), "__version__", None)
        if version:
            found[name] = str(version)
    return found
