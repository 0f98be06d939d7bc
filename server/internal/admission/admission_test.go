package admission_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/internal/admission"
)

func TestShareOfACaller(t *testing.T) {
	gate := admission.NewGate(100, 0.5)
	flood, other := gate.Open(), gate.Open()

	first, ok := flood.Admit(30)
	if !ok {
		t.Fatal("30 of 50 are refused")
	}
	if _, ok := flood.Admit(21); ok {
		t.Error("51 of 50 are admitted")
	}
	if _, ok := flood.Admit(20); !ok {
		t.Error("50 of 50 are refused")
	}
	if _, ok := other.Admit(50); !ok {
		t.Error("another caller does not get its share")
	}
	if _, ok := gate.Open().Admit(1); ok {
		t.Error("101 of 100 are admitted")
	}
	first.Release()
	first.Release()
	if used := gate.Used(); used != 70 {
		t.Errorf("%d are held after the release of 30, want 70", used)
	}
}

// Whatever is larger than a share can be admitted, alone.
func TestLargerThanAShare(t *testing.T) {
	account := admission.NewGate(100, 0.5).Open()
	ticket, ok := account.Admit(1000)
	if !ok {
		t.Fatal("a large call is refused although nothing else is in flight")
	}
	if _, ok := account.Admit(1); ok {
		t.Error("a call is admitted beside one that takes the whole share")
	}
	if !ticket.Resize(10) {
		t.Error("a ticket cannot shrink")
	}
	account.Close()
	if !ticket.Resize(70) {
		t.Error("a ticket of a closed account is refused, and its call is over anyway")
	}
}

// Callers that hold all there is do not keep out one that holds nothing.
func TestSpareRoom(t *testing.T) {
	gate := admission.NewHoldGate(100, 0.5, 10)
	first, second, third := gate.Open(), gate.Open(), gate.Open()
	if _, ok := first.Admit(1000); !ok {
		t.Error("what takes the whole gate is refused although there is nothing else")
	}
	if used := gate.Used(); used != 100 {
		t.Errorf("%d bytes are held, want 100", used)
	}
	if _, ok := second.Admit(11); ok {
		t.Error("11 bytes are admitted beyond the limit")
	}
	if _, ok := second.Admit(10); !ok {
		t.Error("10 spare bytes are refused")
	}
	if _, ok := second.Admit(1); ok {
		t.Error("a caller gets spare bytes a second time")
	}
	if _, ok := third.Admit(1); !ok {
		t.Error("another caller gets no spare bytes")
	}
	if _, ok := first.Admit(1); ok {
		t.Error("a caller that holds more than its share gets more")
	}
}

// Neither bound is ever passed, and nothing is held once all is given back or closed.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 100
		share := rapid.SampledFrom([]float64{0.01, 0.3, 1}).Draw(t, "share")
		gate := admission.NewGate(limit, share)
		accounts := []*admission.Account{gate.Open(), gate.Open(), gate.Open()}
		type held struct {
			ticket admission.Ticket
			n      int64
			of     int
		}
		var tickets []held
		closed := map[int]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			of := rapid.IntRange(0, 2).Draw(t, "account")
			n := rapid.Int64Range(0, 120).Draw(t, "n")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				if ticket, ok := accounts[of].Admit(n); ok {
					tickets = append(tickets, held{ticket, n, of})
				}
			case 1:
				if len(tickets) > 0 {
					if h := &tickets[int(n)%len(tickets)]; h.ticket.Resize(n) {
						h.n = n
					}
				}
			case 2:
				if len(tickets) > 0 {
					h := &tickets[int(n)%len(tickets)]
					h.ticket.Release()
					h.n = 0
				}
			case 3:
				if n < 10 {
					accounts[of].Close()
					closed[of] = true
				}
			}
			var used [3]int64
			most := max(1, int64(limit*share))
			for _, h := range tickets {
				if !closed[h.of] {
					used[h.of] += min(h.n, most)
				}
			}
			total := used[0] + used[1] + used[2]
			if gate.Used() != total {
				t.Fatalf("%d are held, want %d", gate.Used(), total)
			}
			if total > limit || used[of] > most {
				t.Fatalf("%v are held of %d, of which one may hold %d", used, limit, most)
			}
		}
	})
}
