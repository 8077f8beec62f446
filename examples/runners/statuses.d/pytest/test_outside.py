import os

if os.environ.get("PLANTED") == "outside":
    raise RuntimeError("does not load")
