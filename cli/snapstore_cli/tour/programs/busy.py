"""An agent that saves as fast as it can, until it is killed."""

import itertools

import snapstore

session = snapstore.open("busy").session("busy")
for number in itertools.count(1):
    session.history.append({"role": "user", "content": f"message {number}"})
    print("saved turn", session.save().turn, flush=True)
