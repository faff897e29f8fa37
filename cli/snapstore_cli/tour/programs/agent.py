"""An agent at work: it says that a turn is saved only when the turn is on the disk."""

import sys

import snapstore

TALK: list[tuple[str, str, dict[str, object]]] = [
    ("Why does the login fail?", "The cookie expires at once.", {"file": "login.py"}),
    ("Fix it.", "Done: the cookie lives for a day now.", {"fixed": True}),
    ("Write a test for it.", "tests/test_login.py has two cases.", {"tests": 2}),
    ("Change the changelog.", "There is a line under Fixed.", {"changelog": True}),
]

session = snapstore.open(".snapstore").session("fix-login")
print(f"the session is at turn {session.turn}")
for question, answer, facts in TALK[session.turn : session.turn + int(sys.argv[1])]:
    session.history.append({"role": "user", "content": question})
    session.history.append({"role": "assistant", "content": answer})
    session.scratchpad.update(facts)
    print("saved turn", session.save(question).turn, flush=True)
