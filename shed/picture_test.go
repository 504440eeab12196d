package shed_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/shed"
)

func picture(reason, format string, d classify.Dialect) shed.Body {
	refusal := ows(refusals()[reason], d)
	refusal.Format = format
	return refusal.Body(shed.BodyConfig{})
}

func inImage(width, height int) classify.Dialect {
	return classify.Dialect{Service: "WMS", Version: "1.3.0", Exceptions: classify.ExceptionsInImage, Width: width, Height: height}
}

func decoded(t *testing.T, body shed.Body) image.Image {
	t.Helper()
	m, format, err := image.Decode(bytes.NewReader(body.Bytes))
	if err != nil {
		t.Fatal(err)
	}
	if "image/"+format != body.ContentType {
		t.Errorf("%s with the bytes of %s", body.ContentType, format)
	}
	return m
}

// inked counts the pixels that are neither white nor nothing.
func inked(m image.Image) (n int) {
	size := m.Bounds().Size()
	for y := range size.Y {
		for x := range size.X {
			if c, ok := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA); ok && c.A > 0 && c.R < 0x80 {
				n++
			}
		}
	}
	return n
}

// The golden pictures are compared by their pixels: how well they are
// compressed is up to the library.
func TestPicturesAreTheGoldenOnes(t *testing.T) {
	for name := range refusals() {
		body := picture(name, "image/png", inImage(256, 128))
		path := filepath.Join("testdata", "pictures", name+".png")
		if *update {
			if err := os.WriteFile(path, body.Bytes, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		bytes, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, want := decoded(t, body), decoded(t, shed.Body{ContentType: "image/png", Bytes: bytes})
		if got.Bounds() != want.Bounds() {
			t.Fatalf("%s: %v, want %v", path, got.Bounds(), want.Bounds())
		}
		for i := range 256 * 128 {
			if got.At(i%256, i/256) != want.At(i%256, i/256) {
				t.Fatalf("%s: differs at %d, %d", path, i%256, i/256)
			}
		}
	}
}

func TestPicturesHaveTheSizeAndFormatThatWereAskedFor(t *testing.T) {
	for _, c := range []struct {
		format        string
		width, height int
		want          string
		wantX, wantY  int
		written       bool
	}{
		{"image/png", 256, 256, "image/png", 256, 256, true},
		{"image/png; mode=8bit", 300, 200, "image/png", 300, 200, true},
		{"image/jpeg", 256, 256, "image/jpeg", 256, 256, true},
		{"IMAGE/JPEG", 64, 64, "image/jpeg", 64, 64, true},
		{"image/gif", 200, 300, "image/gif", 200, 300, true},
		{"image/webp", 256, 256, "image/png", 256, 256, true},
		{"", 256, 256, "image/png", 256, 256, true},
		{"image/jpeg", 512, 512, "image/png", 512, 512, true}, // too dear to code
		{"image/png", 4096, 3000, "image/png", 2048, 2048, true},
		{"image/png", 4096, 64, "image/png", 2048, 64, true},
		{"image/png", 17, 40, "image/png", 17, 40, true}, // one character a line
		{"image/png", 8, 8, "image/png", 8, 8, false},    // no room for text
		{"image/png", 1, 1, "image/png", 1, 1, false},
	} {
		body := picture("rate", c.format, inImage(c.width, c.height))
		m := decoded(t, body)
		if size := m.Bounds().Size(); body.ContentType != c.want || size.X != c.wantX || size.Y != c.wantY {
			t.Errorf("%s %dx%d: %s %v", c.format, c.width, c.height, body.ContentType, size)
		}
		if n := inked(m); (n > 0) != c.written {
			t.Errorf("%s %dx%d: %d pixels are written on", c.format, c.width, c.height, n)
		}
	}
}

func TestBlankPicturesShowNothing(t *testing.T) {
	for _, transparent := range []bool{false, true} {
		for _, format := range []string{"image/png", "image/gif", "image/jpeg"} {
			d := inImage(130, 70)
			d.Exceptions, d.Transparent = classify.ExceptionsBlank, transparent
			m := decoded(t, picture("rate", format, d))
			if n := inked(m); n != 0 {
				t.Errorf("%s: %d pixels are written on", format, n)
			}
			_, _, _, alpha := m.At(60, 60).RGBA()
			if wanted := !transparent || format == "image/jpeg"; (alpha != 0) != wanted {
				t.Errorf("%s, transparent %v: opacity %d", format, transparent, alpha)
			}
		}
	}
}

func BenchmarkPicture(b *testing.B) {
	for _, format := range []string{"png", "jpeg", "gif"} {
		for _, side := range []int{256, 512, 2048} {
			b.Run(fmt.Sprintf("%s-%d", format, side), func(b *testing.B) {
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					n = len(picture("rate", "image/"+format, inImage(side, side)).Bytes)
				}
				b.ReportMetric(float64(n), "bytes")
			})
		}
	}
}
