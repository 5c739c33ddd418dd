package fakeengine

import "strconv"

// flags of llama-server that are understood.
type flags struct {
	host    string
	port    int
	slots   int
	ctx     int
	unified bool
	version bool
}

func parseFlags(args []string) flags {
	f := flags{host: "127.0.0.1", port: 8080, slots: 1, ctx: 4096}
	for i := 0; i < len(args); i++ {
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		number := func(to *int) {
			if n, err := strconv.Atoi(next); err == nil {
				*to = n
				i++
			}
		}
		switch args[i] {
		case "--version":
			f.version = true
		case "--host":
			f.host = next
			i++
		case "--port":
			number(&f.port)
		case "--parallel", "-np":
			number(&f.slots)
		case "--ctx-size", "-c":
			number(&f.ctx)
		case "--kv-unified", "-kvu":
			f.unified = true
		}
	}
	return f
}
