"""Rows and clips on disk: durable before anything that depends on them starts, resumable, one driver a run (DESIGN 4).

Write through :class:`LocalRunStore`; read with the functions of `reader`, `manifest` and `clips`, which need no lease.
"""

from torus_ray.store.errors import ClipDamaged, ManifestError, RunHeld, StoreError
from torus_ray.store.interface import ClipSource, KeptClip, Lease, Linked, RunStore
from torus_ray.store.local import LocalRunStore
from torus_ray.store.manifest import HeadInfo, RunManifest, read_manifest, write_manifest
from torus_ray.store.reader import TableRead, current_rows, read_table
from torus_ray.store.tables import Row

__all__ = [
    "ClipDamaged",
    "ClipSource",
    "HeadInfo",
    "KeptClip",
    "Lease",
    "Linked",
    "LocalRunStore",
    "ManifestError",
    "Row",
    "RunHeld",
    "RunManifest",
    "RunStore",
    "StoreError",
    "TableRead",
    "current_rows",
    "read_manifest",
    "read_table",
    "write_manifest",
]
