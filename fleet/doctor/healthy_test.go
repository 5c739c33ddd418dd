package doctor_test

import (
	"path/filepath"
	"testing"
	"time"
)

// onlyOdd puts on the clean host what looks odd and is as it should be: an instance of a template, services that are
// stopped on purpose, one that does a thing and ends, one on hold, a soak's. Nothing of it is told. The host is used up
// then.
func onlyOdd(t *testing.T, g *garden) {
	archive, err := g.host.Bring(pack(t, "f00d002", fixed))
	if err != nil {
		t.Fatal(err)
	}
	g.root.ask(t, question{Do: "install", Args: []string{archive}})
	server := "/opt/1bit/1bit-hrx-f00d002/" + serverPath
	for name, text := range map[string]string{
		"big@.service": "[Service]\nUser=ai\nEnvironment=ONEBIT_LLAMA_SERVER=" + server +
			"\nExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER} --port 18099 --alias %i\nRestart=always\n[Install]\nWantedBy=multi-user.target\n",
		"off.service": "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=" + server + "\nExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER} --port 18099\n",
		"once.service": "[Service]\nType=oneshot\nRemainAfterExit=yes\nEnvironment=LD_LIBRARY_PATH=/opt/1bit/1bit-hrx-f00d002/hrx/llama/lib\n" +
			"ExecStart=/bin/true\n",
	} {
		g.write("/etc/systemd/system/"+name, text)
	}
	g.asRoot("systemctl", "daemon-reload")
	g.asRoot("systemctl", "enable", "--now", "big@a.service")
	g.asRoot("systemctl", "start", "once.service")
	g.root.ask(t, question{Do: "adopt", Args: []string{"big@a.service"}})
	g.write("/etc/big.env", "LLAMA_API_KEY=only root may know\n")
	g.chmod("/etc/big.env", 0o600)
	g.write("/etc/systemd/system/big@a.service.d/10-key.conf", "[Service]\nEnvironmentFile=/etc/big.env\n")
	g.asRoot("systemctl", "daemon-reload")
	g.asUser("systemd-run", "--user", "--unit=soak", "--setenv=GGML_HRX_NAN_CONTINUE=1", filepath.Join(g.data, "1bit-hrx-aaa0001", serverPath))
	g.asUser("systemd-run", "--user", "--scope", "--unit=claim", "sh", "-c", "exec "+filepath.Join(g.data, "1bit-hrx-aaa0001", serverPath)+" >/dev/null 2>&1 &")
	g.write(filepath.Join(g.units, "stopped.service"), "[Service]\n"+serverOf("aaa0001")+"ExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER} --port 18095\n")
	g.asUser("systemctl", "--user", "daemon-reload")
	g.user.ask(t, question{Do: "hold", Args: []string{unit, "a soak is compared with it"}})
	for _, a := range []*asker{g.user, g.root} {
		r := a.ask(t, question{Do: "doctor", Now: time.Now()})
		if len(r.Findings) > 0 {
			t.Errorf("%s is told\n%s", a.account, show(r.Findings))
		}
	}
}
