# labels: nightly
"""isotope-serve under load: 200 clients at a time, for about a minute on two cores; some of them leave early."""

from program import main
from serve_rig import Server, asks, at_once, needs_equal_bits, request


def test_two_hundred_streams_at_a_time_are_neither_wrong_nor_lost_nor_crossed(f):
    needs_equal_bits(f)
    clients, rounds = 200, 240
    with Server(f, "gpt", "--slots", "8", "--queue", "400", "--connections", "500") as s:
        what = asks(97)
        alone = [s.text(**a) for a in what]

        def client(k):
            wrong = 0
            for r in range(rounds):
                n = (31 * k + r) % len(what)
                if (k + r) % 11 == 0:  # leaves without its answer
                    s.raw(request("/v1/completions", what[n] | {"stream": r % 2 == 0})).close()
                elif (k + r) % 3 == 0:
                    wrong += s.text(**what[n]) != alone[n]
                else:
                    wrong += "".join(c["choices"][0]["text"] for c in s.stream(**what[n])) != alone[n]
            return wrong

        assert at_once([lambda k=k: client(k) for k in range(clients)]) == [0] * clients
        assert s.metric("refused_total") == 0
        assert s.stop() == (0, "")


if __name__ == "__main__":
    main(globals())
