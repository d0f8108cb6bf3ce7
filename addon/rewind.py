"""What `mitmdump -s addon/rewind.py` loads."""

from rewind_proxy.mitm.addon import Rewind

addons = [Rewind()]
