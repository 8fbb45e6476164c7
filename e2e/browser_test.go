package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browserTimeout is the time limit for one page on a busy machine.
const browserTimeout = 2 * time.Minute

// chromium returns the path of a browser.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	require.FailNow(t, "no browser", "this test looks at a page in one: apt-get install chromium, or name the "+
		"program in CHROMIUM")
	return ""
}

// tab is a page in a headless browser, with its requests and messages.
type tab struct {
	ctx      context.Context
	mu       sync.Mutex
	asked    []string // URLs
	messages []string // of the console, including policy violations
}

// openTab opens a file.
func openTab(t testing.TB, path string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)),
		chromedp.UserDataDir(t.TempDir()))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // the sandbox needs another user
	}
	ctx, cancel := context.WithTimeout(context.Background(), browserTimeout)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	tab := &tab{}
	tab.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(tab.ctx)) // starts the browser
	require.NoError(t, chromedp.Listen(tab.ctx, tab.listen))
	_, err := chromedp.Call(tab.ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	require.NoError(t, chromedp.Do(tab.ctx, chromedp.Navigate("file://"+path)))
	return tab
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		b.messages = append(b.messages, string(e.Type))
	case *runtime.EventExceptionThrown:
		b.messages = append(b.messages, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.messages = append(b.messages, e.Entry.Text)
	}
}

// eval returns the value of an expression, evaluated regardless of the page's policy.
func eval[T any](t testing.TB, b *tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err)
	return value
}

// look is a combination of screen width, color scheme and media.
type look struct {
	name   string
	width  int64
	scheme string // light or dark
	media  string // screen or print
}

// show applies a look, and writes a picture.
func (b *tab) show(t testing.TB, l look, picture string) {
	t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: l.media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}},
	})
	require.NoError(t, err)
	options := []chromedp.EmulateViewportOption{}
	if l.width < 600 {
		options = append(options, chromedp.EmulateMobile)
	}
	require.NoError(t, chromedp.Do(b.ctx, chromedp.EmulateViewport(l.width, 900, options...)))
	image, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(picture, image, 0o600))
}

// print writes the page as a PDF.
func (b *tab) print(t testing.TB, path string) {
	t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	require.NoError(t, err)
	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4)))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, pdf, 0o600))
}

// pictures returns a permanent folder for pictures of a test.
func pictures(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("bin", "pictures")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}
