package detect

import (
	"syscall"

	"github.com/1bit-systems/pkg/engine"
)

func crash() face {
	return face{
		FaceInfo: FaceInfo{Name: Crash, Default: Gate, Gates: true, Unit: UnitArm,
			About: "the server ended by itself, or says in the log that it is about to"},
		find: []detector{on(serverEnded), on(func(ev engine.LogEvent) []Finding {
			if ev.Kind != engine.LogAbort || ev.NaNAbort {
				return nil
			}
			return one(Fault, quote([]byte(ev.Detail)), "aborted: %s", quote([]byte(ev.Detail)))
		})},
	}
}

// serverEnded names the signal, also one that a shell in between told as 128 plus its number. A server that was killed while
// the kernel killed for memory, or that whoever guards the memory says to have ended, did so for a cause outside of it.
func serverEnded(e Exit) []Finding {
	if e.KilledBy != "" {
		return one(Invalid, quote([]byte(e.KilledBy)), "the server was killed for memory: %s", e.Status)
	}
	if e.OOMKilled && e.Status.KilledBy() == syscall.SIGKILL {
		return one(Invalid, "", "the server was killed for memory: %s", e.Status)
	}
	return one(Fault, "", "the server ended by itself: %s", e.Status)
}
