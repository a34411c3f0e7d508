"""`--model FILE.py:CLASS`: a system from one class, run by this interpreter."""

from __future__ import annotations

from pathlib import Path

from torus_ray.errors import InputError
from torus_ray.systems import System


def system_of_model(reference: str) -> System:
    """Load the class to see what it implements. Raises InputError for anything that is not a model class."""
    from torus_ray.engine.hosting import load_class
    from torus_ray.heads import OPERATIONS, operations_of
    from torus_ray.systems import model_system

    file, _, class_name = reference.rpartition(":")
    path = Path(file)
    if not file or not class_name.isidentifier() or path.suffix != ".py" or not path.is_file():
        raise InputError(
            f"--model {reference!r} is no class in a file",
            where=str(path.absolute()) if file else "--model",
            expected="FILE.py:CLASS, the file being there",
            mend="e.g. --model my_model.py:MyModel",
        )
    path = path.resolve()
    try:
        cls = load_class(str(path.parent), path.stem, class_name)
    except Exception as error:
        raise InputError(
            f"{path.name} could not be imported: {type(error).__name__}: {error}",
            where=str(path),
            expected=f"a file that this Python imports, with a class {class_name}",
            mend=f"`python {path.name}` shows the traceback",
        ) from error
    heads = operations_of(cls)
    if not heads:
        raise InputError(
            f"class {class_name} serves nothing",
            where=str(path),
            expected="one or more of the methods " + ", ".join(OPERATIONS),
            mend="see docs/your-own-model.md",
        )
    capabilities = {str(k): list(v) for k, v in dict(getattr(cls, "capabilities", {})).items()}
    return model_system(path, class_name, heads, capabilities, style=getattr(cls, "style", "batch"))
