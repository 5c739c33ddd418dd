package incident

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFunctionsOfABacktrace(t *testing.T) {
	want := "common_sampler_sample <- server_context_impl::post_decode lambda <- iterate <- post_decode <- update_slots <- server_queue::start_loop <- llama_server <- main"
	shapes := map[string]string{
		"gdb, which llama.cpp starts by itself": "\x1b[35m#0\x1b[m  0x00007f8b2c0a9e2c in \x1b[33m__GI___wait4\x1b[m (pid=4242) at ../sysdeps/unix/sysv/linux/wait4.c:30\n" +
			"30\t../sysdeps/unix/sysv/linux/wait4.c: No such file or directory.\n" +
			"#1  0x00007f8b2c5b1e6a in ggml_print_backtrace () from /home/x/lib/libggml-base.so\n" +
			"#2  0x00007f8b2c5b1f0c in ggml_abort () from /home/x/lib/libggml-base.so\n" +
			"#3  0x0000558e1a3c9d10 in common_sampler_sample (gsmpl=0x55, ctx=0x1, idx=3, grammar_first=false) at /src/common/sampling.cpp:620\n" +
			"#4  0x0000558e1a2f0001 in server_context_impl::post_decode(llama_batch&, int)::{lambda(server_slot&)#1}::operator()(server_slot&) const (this=0x7ffc, slot=...) at /src/server.cpp:3\n" +
			"#5  0x0000558e1a2f0002 in void server_context_impl::iterate<server_context_impl::post_decode(llama_batch&)::{lambda(server_slot&)#1}>(std::function<void (server_slot&)>&&) ()\n" +
			"#6  0x0000558e1a2f0003 in server_context_impl::post_decode(llama_batch&, int) ()\n" +
			"#7  0x0000558e1a2f0004 in server_context_impl::update_slots() ()\n" +
			"#8  0x0000558e1a2f0005 in std::_Function_handler<void (), llama_server::{lambda()#2}>::_M_invoke(std::_Any_data const&) ()\n" +
			"#9  0x0000558e1a2f0006 in server_queue::start_loop(long) ()\n" +
			"#10 0x0000558e1a2f0007 in llama_server(int, char**) ()\n" +
			"#11 0x0000558e1a2f0008 in main (argc=3, argv=0x1)\n[Inferior 1 (process 4242) detached]",
		"glibc": "/home/x/lib/libggml-base.so(+0x1a3c6) [0x7f8b2c5b1e6a]\n/home/x/lib/libggml-base.so(ggml_print_backtrace+0x1f2) [0x7f8b2c5b1f0c]\n" +
			"/home/x/bin/llama-server(_Z21common_sampler_sampleP14common_samplerP13llama_contextib+0x2e0) [0x558e1a3c9d10]\n" +
			"/home/x/bin/llama-server(_ZZN19server_context_impl11post_decodeEPcENKUlR11server_slotE_clES2_+0x11) [0x558e1a2f0001]\n" +
			"/home/x/bin/llama-server(_ZN19server_context_impl7iterateEOSt8functionIFvR11server_slotEE+0x11) [0x558e1a2f0002]\n" +
			"/home/x/bin/llama-server(_ZN19server_context_impl11post_decodeEPc+0x11) [0x558e1a2f0003]\n" +
			"/home/x/bin/llama-server(_ZN19server_context_impl12update_slotsEv+0x11) [0x558e1a2f0004]\n" +
			"/home/x/bin/llama-server(_ZN12server_queue10start_loopEv+0x11) [0x558e1a2f0004]\n" +
			"/home/x/bin/llama-server(_Z12llama_serveriPPc+0x11) [0x558e1a2f0004]\n/home/x/bin/llama-server(main+0x11) [0x558e1a2f0005]\n" +
			"/lib/libc.so.6(__libc_start_main+0x85) [0x7f8b2b0]\n/home/x/bin/llama-server(_start+0x21) [0x558e1a2]",
		"systemd-coredump": "Process 4242 (llama-server) of user 1000 dumped core.\n\nStack trace of thread 4242:\n" +
			"#0  0x00007f8b2c0a9e2c n/a (libc.so.6 + 0x8ae2c)\n#1  0x00007f8b2c05afb2 raise (libc.so.6 + 0x3bfb2)\n" +
			"#2  0x0000558e1a3c9d10 _Z21common_sampler_sampleP14common_samplerP13llama_contextib (llama-server + 0x2bd10)\n" +
			"#3  0x0000558e1a2f0001 _ZZN19server_context_impl11post_decodeEPcENKUlR11server_slotE_clES2_ (llama-server + 0x1)\n" +
			"#4  0x0000558e1a2f0002 _ZN19server_context_impl7iterateEOSt8functionIFvR11server_slotEE (llama-server + 0x1)\n" +
			"#5  0x0000558e1a2f0003 server_context_impl::post_decode (llama-server + 0x1)\n" +
			"#6  0x0000558e1a2f0004 _ZN19server_context_impl12update_slotsEv (llama-server + 0x1)\n" +
			"#7  0x0000558e1a2f0005 _ZN12server_queue10start_loopEv.cold (llama-server + 0x1)\n" +
			"#8  0x0000558e1a2f0006 _Z12llama_serveriPPc (llama-server + 0x1)\n#9  0x0000558e1a2f0007 main (llama-server + 0x1)\n\n" +
			"Stack trace of thread 4250:\n#0  0x00007f8b2c0f9c5e epoll_wait (libc.so.6 + 0xdac5e)",
	}
	for name, text := range shapes {
		if got := shortTrace(functions(coreFrames(text))); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
}

func TestShortName(t *testing.T) {
	for in, want := range map[string]string{
		"ns::(anonymous namespace)::run(int) (x=1)":        "ns::run",
		"std::ostream::operator<<(int) ()":                 "std::ostream::operator<<",
		"foo [clone .cold] ()":                             "foo",
		"n/a (libc.so.6 + 0x1)":                            "",
		"?? ()":                                            "",
		"<signal handler called>":                          "",
		"_ZbrokenName (x + 0x1)":                           "_ZbrokenName",
		"evil`code` | <b>@someone</b>":                     "",
		"a::b::c(std::vector<int, std::allocator<int> >&)": "a::b::c",
	} {
		if got := shortName(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

// Frames are of one trace, and bounded.
func TestFirstTraceIsBounded(t *testing.T) {
	var lines []string
	for range 3 {
		lines = append(lines, "#0 0x1 in a ()", "#1 0x1 in b ()")
	}
	if diff := cmp.Diff([]string{"a ()", "b ()"}, firstTrace(lines)); diff != "" {
		t.Error(diff)
	}
	many := strings.Split(strings.Repeat("/x(f+0x1) [0x1]\n", 500), "\n")
	if n := len(firstTrace(many)); n != maxFrames {
		t.Errorf("%d frames", n)
	}
}
