package interop_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// deployBlocks returns the blocks of a language in docs/DEPLOY.md.
func deployBlocks(t *testing.T, language string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/DEPLOY.md")
	if err != nil {
		t.Fatal(err)
	}
	for rest := string(text); ; {
		_, after, found := strings.Cut(rest, "```"+language+"\n")
		if !found {
			break
		}
		var block string
		block, rest, _ = strings.Cut(after, "```")
		blocks = append(blocks, block)
	}
	if len(blocks) == 0 {
		t.Fatalf("docs/DEPLOY.md has no block of %s", language)
	}
	return blocks
}

// The manifests conform to the schemas of Kubernetes, and agree with each other and with the service.
func TestDeployKubernetes(t *testing.T) {
	var deployment appsv1.Deployment
	var service corev1.Service
	var budget policyv1.PodDisruptionBudget
	manifests := strings.Split(deployBlocks(t, "yaml")[0], "\n---\n")
	if len(manifests) != 3 {
		t.Fatalf("got %d manifests", len(manifests))
	}
	for i, into := range []any{&deployment, &service, &budget} {
		if err := yaml.UnmarshalStrict([]byte(manifests[i]), into); err != nil {
			t.Fatalf("manifest %d: %v", i, err)
		}
	}
	if deployment.Kind != "Deployment" || service.Kind != "Service" || budget.Kind != "PodDisruptionBudget" {
		t.Errorf("got kinds %s, %s and %s", deployment.Kind, service.Kind, budget.Kind)
	}
	pod := deployment.Spec.Template
	for name, value := range deployment.Spec.Selector.MatchLabels {
		if pod.Labels[name] != value || service.Spec.Selector[name] != value || budget.Spec.Selector.MatchLabels[name] != value {
			t.Errorf("label %s is not %s in all manifests", name, value)
		}
	}
	c := pod.Spec.Containers[0]
	if c.ReadinessProbe.HTTPGet.Path != "/ready" || c.ReadinessProbe.HTTPGet.Port.StrVal != c.Ports[0].Name || service.Spec.Ports[0].TargetPort.StrVal != c.Ports[0].Name {
		t.Errorf("got port %v of the probe and %v of the service", c.ReadinessProbe.HTTPGet, service.Spec.Ports[0].TargetPort)
	}
	if c.Resources.Limits.Memory().IsZero() || c.LivenessProbe.HTTPGet != nil {
		t.Error("the manifest has no memory limit, or a draining process is killed")
	}
	grace := 0
	for i, arg := range c.Args {
		if arg == "-grace" {
			grace, _ = strconv.Atoi(strings.TrimSuffix(c.Args[i+1], "s"))
		}
	}
	const drainTimeout = 30
	if all := c.Lifecycle.PreStop.Sleep.Seconds + int64(grace) + drainTimeout; grace == 0 || *pod.Spec.TerminationGracePeriodSeconds <= all {
		t.Errorf("the pod is killed after %d s, but a drain may take %d s", *pod.Spec.TerminationGracePeriodSeconds, all)
	}
}

// The units contain only settings that systemd knows.
func TestDeploySystemd(t *testing.T) {
	analyze := needTool(t, "systemd-analyze")
	dir := t.TempDir()
	args := []string{"verify", "--man=no"}
	for _, unit := range deployBlocks(t, "ini") {
		first, _, _ := strings.Cut(unit, "\n")
		name := filepath.Join(dir, strings.TrimPrefix(first, "# "))
		unit = strings.ReplaceAll(unit, "/usr/local/bin/users", "/bin/true") // the program must exist
		if err := os.WriteFile(name, []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	if len(args) != 5 {
		t.Fatalf("got %d units", len(args)-2)
	}
	said, err := exec.Command(analyze, args...).CombinedOutput()
	if err != nil || strings.Contains(string(said), dir) { // unknown settings are warnings; other warnings are about units of this machine
		t.Errorf("systemd-analyze verify: got %v\n%s", err, said)
	}
}

// HAProxy and nginx accept their configurations.
func TestDeployProxies(t *testing.T) {
	t.Run("haproxy", func(t *testing.T) {
		haproxy := needTool(t, "haproxy")
		config := filepath.Join(t.TempDir(), "haproxy.cfg")
		if err := os.WriteFile(config, []byte(deployBlocks(t, "haproxy")[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command(haproxy, "-c", "-V", "-f", config).CombinedOutput(); err != nil || strings.Contains(string(said), "WARNING") {
			t.Errorf("haproxy -c: got %v\n%s", err, said)
		}
	})
	t.Run("nginx", func(t *testing.T) {
		nginx := needTool(t, "nginx")
		dir := t.TempDir()
		block := deployBlocks(t, "nginx")[0]
		if !strings.Contains(block, "listen 80;") {
			t.Fatal("the configuration does not listen on port 80")
		}
		text := fmt.Sprintf(`pid %[1]s/pid; error_log stderr;
events {}
http {
	access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[2]s}
`, dir, strings.Replace(block, "listen 80;", "listen unix:"+dir+"/socket;", 1))
		config := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command(nginx, "-t", "-p", dir, "-c", config).CombinedOutput(); err != nil || strings.Contains(string(said), "[warn]") {
			t.Errorf("nginx -t: got %v\n%s", err, said)
		}
	})
}
