package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// browsers are the programs that Debian, Ubuntu and others call the same browser.
var browsers = []string{"chromium-headless-shell", "chromium", "google-chrome", "chrome"}

// requireBrowser finds a real browser. Without one the test is skipped, in CI it fails.
func requireBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("ONEBIT_CI") != "" {
		t.Fatalf("no browser: none of %s is installed", strings.Join(browsers, ", "))
	}
	t.Skipf("no browser: none of %s is installed", strings.Join(browsers, ", "))
	return ""
}

// browse opens a page of this machine, without any network, and returns what
// the browser wrote: the page's document or nothing, and its console.
func browse(t *testing.T, browser, page string, flags ...string) (out, console string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + t.TempDir(),
	}, flags...)
	cmd := exec.CommandContext(ctx, browser, append(args, "file://"+page)...)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", browser, strings.Join(flags, " "), errors.Join(err, ctx.Err()), &stderr)
	}
	for line := range strings.Lines(stderr.String()) {
		if strings.Contains(line, "CONSOLE") {
			console += line
		}
	}
	return stdout.String(), console
}

// screens are the sizes and themes in which people read a report.
var screens = []struct {
	name          string
	width, height int
	dark          bool
}{{"phone-light", 390, 844, false}, {"phone-dark", 390, 844, true}, {"desktop-light", 1280, 900, false}, {"desktop-dark", 1280, 900, true}}

// The page opens in a real browser without a word on the console, fits its
// screen, and shows text in both themes. SCREENSHOTS names a folder to keep the
// pictures in.
func TestPageInBrowser(t *testing.T) {
	browser := requireBrowser(t)
	for name, r := range map[string]*Report{"clean": cleanRun(), "faulty": faultyRun(), "empty": emptyRun()} {
		page := filepath.Join(t.TempDir(), name+".html")
		writePage(t, r, page)
		for _, s := range screens {
			if name == "empty" && s.name != "desktop-light" {
				continue
			}
			t.Run(name+"-"+s.name, func(t *testing.T) {
				shot := filepath.Join(t.TempDir(), "shot.png")
				theme := "1" // light
				if s.dark {
					theme = "0"
				}
				_, console := browse(t, browser, page, "--screenshot="+shot, fmt.Sprintf("--window-size=%d,%d", s.width, s.height),
					"--blink-settings=preferredColorScheme="+theme)
				if console != "" {
					t.Errorf("the console says:\n%s", console)
				}
				checkPicture(t, shot, s.width, s.dark)
				if dir := os.Getenv("SCREENSHOTS"); dir != "" {
					keep(t, shot, filepath.Join(dir, name+"-"+s.name+".png"))
				}
			})
		}
	}
}

// A copy of the page that measures itself: nothing may be wider than the
// screen but what scrolls by itself.
func TestPageFitsAPhone(t *testing.T) {
	browser := requireBrowser(t)
	var b bytes.Buffer
	if err := faultyRun().HTML(&b); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(b.String(), "default-src 'none'; ", "script-src 'unsafe-inline'; ", 1)
	text = strings.Replace(text, "</body>", `<script>
	let wide=[];for(const e of document.querySelectorAll("main *")){if(!e.closest(".wide,figure")&&e.getBoundingClientRect().right>innerWidth+1)wide.push(e.tagName)}
	document.title="measured "+innerWidth+" "+document.documentElement.scrollWidth+" "+wide.join(",")</script></body>`, 1)
	page := filepath.Join(t.TempDir(), "measured.html")
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := browse(t, browser, page, "--dump-dom", "--window-size=390,844")
	var inner, scroll int
	_, title, _ := strings.Cut(out, "<title>")
	title, _, _ = strings.Cut(title, "</title>")
	if n, _ := fmt.Sscanf(title, "measured %d %d", &inner, &scroll); n != 2 {
		t.Fatalf("the page did not measure itself: title %q", title)
	}
	if scroll > inner || strings.TrimSpace(strings.SplitN(title, " ", 4)[3]) != "" {
		t.Errorf("wider than the screen: %s", title)
	}
}

// A page that asks for something, or says something on the console, is noticed
// by the same means.
func TestBrowserTellsTrouble(t *testing.T) {
	browser := requireBrowser(t)
	page := filepath.Join(t.TempDir(), "bad.html")
	const bad = `<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'none'"><img src="http://127.0.0.1:9/x.png">`
	if err := os.WriteFile(page, []byte(bad), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, console := browse(t, browser, page, "--dump-dom"); console == "" {
		t.Error("a request that the page forbids itself is not told on the console")
	}
}

func writePage(t *testing.T, r *Report, path string) {
	t.Helper()
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func keep(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// checkPicture fails for a picture of another size, of the wrong theme, or
// without anything on it.
func checkPicture(t *testing.T, path string, width int, dark bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if img.Bounds().Dx() != width {
		t.Errorf("%d pixels wide, want %d", img.Bounds().Dx(), width)
	}
	light, other := brightness(img)
	if ground := light > 128; ground == dark {
		t.Errorf("dark %v, but the ground has brightness %d", dark, light)
	}
	if share := other; !(share > 0.01) {
		t.Errorf("only %.4f of the picture is anything but ground", share)
	}
}

// brightness gives the brightness of the first pixel, which is ground, and the
// share of pixels that are far from it.
func brightness(img image.Image) (ground int, other float64) {
	b := img.Bounds()
	grey := func(x, y int) int { return int(color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y) }
	ground = grey(b.Min.X, b.Min.Y)
	n, all := 0, 0
	for y := b.Min.Y; y < b.Max.Y; y += 2 {
		for x := b.Min.X; x < b.Max.X; x += 2 {
			all++
			if d := grey(x, y) - ground; d > 60 || d < -60 {
				n++
			}
		}
	}
	return ground, float64(n) / float64(all)
}
