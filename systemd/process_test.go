package systemd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProcesses(t *testing.T) {
	root := t.TempDir()
	const group = "/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service"
	writeFile(t, root+"/cgroup"+group+"/cgroup.procs", "30\n4\n0\n")
	writeFile(t, root+"/cgroup"+group+"/payload/cgroup.procs", "17\n")
	writeFile(t, root+"/cgroup"+group+"/payload/deeper/cgroup.procs", "18\n")
	writeFile(t, root+"/cgroup"+group+"/payload/deeper/cgroup.threads", "19\n")
	writeFile(t, root+"/cgroup/user.slice/cgroup.procs", "99\n")
	for pid, text := range map[string]string{
		"4":    "0::" + group + "\n",
		"17":   "0::" + group + "/payload\n",
		"18":   "12:cpu:/other\n1:name=systemd:" + group + "\n",
		"50":   "0::" + group + "2\n",
		"51":   "12:cpu:" + group + "\n",
		"self": "0::" + group + "\n",
	} {
		writeFile(t, root+"/proc/"+pid+"/cgroup", text)
	}
	tests := []struct {
		name, cgroups, group string
		want                 []int
	}{
		{"the group and those below it", "/cgroup", group, []int{4, 17, 18, 30}},
		{"no group", "/cgroup", "", nil},
		{"another tree: by what /proc says", "/none", group, []int{4, 17, 18}},
		{"a group that is gone", "/cgroup", group + "-gone", nil},
		{"a group outside of the tree", "/cgroup/user.slice/user-1000.slice", "/../../user.slice", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Processes(root+"/proc", root+test.cgroups, &Unit{ID: "llm.service", ControlGroup: test.group})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	writeFile(t, root+"/cgroup/bad/cgroup.procs", "12\nx\n")
	if pids, err := Processes(root+"/proc", root+"/cgroup", &Unit{ControlGroup: "/bad"}); err == nil {
		t.Errorf("a file that is no list of processes gives %v", pids)
	}
	if _, err := Processes(root+"/none", root+"/none", &Unit{ControlGroup: group}); err == nil {
		t.Error("without any tree there is no error")
	}
}
