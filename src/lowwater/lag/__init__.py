"""How far groups are behind: observed, judged, explained; and offsets that are set, with a way back.

observation = await observer.observe(["billing"])       # asks the cluster
history.take(observation)                             # remembers
report = judge(observation, history)                  # pure
"""
