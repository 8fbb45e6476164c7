package etcdtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// PageSize is the page size of all recorded snapshots.
const PageSize = 4096

var le = binary.LittleEndian

// way changes a database image of several pages. The result may be the same slice.
type way struct {
	what   string
	change func(r *rand.Rand, image []byte) []byte
}

func ways() []way {
	inPlace := func(edit func(r *rand.Rand, image []byte)) func(*rand.Rand, []byte) []byte {
		return func(r *rand.Rand, image []byte) []byte {
			edit(r, image)
			return image
		}
	}
	return []way{
		{"flip", inPlace(FlipBits)}, {"zero", inPlace(ZeroBytes)}, {"splice", inPlace(SplicePage)},
		{"flip", inPlace(FlipBits)}, {"zero", inPlace(ZeroBytes)},
		{"cut", cut}, {"many", inPlace(many)}, {"shift", shift},
	}
}

// Damage returns the damaged copy of a snapshot with a number, as by failing disks, failed copies
// and attackers. A number gives the same damage each time. Every second copy has a correct digest.
func Damage(number int, file []byte) (what string, changed []byte) {
	way := ways()[number/2%len(ways())]
	what = way.what
	r := rand.New(rand.NewPCG(uint64(number), 16))
	image, digest := bytes.Clone(file), []byte{}
	if len(file)%512 == sha256.Size {
		image, digest = image[:len(file)-sha256.Size], file[len(file)-sha256.Size:]
	}
	image = way.change(r, image)
	if number%2 == 1 {
		return what + ", digest right", WithDigest(image)
	}
	return what, append(image, digest...)
}

// WithDigest returns an image with the digest appended by etcd.
func WithDigest(image []byte) []byte {
	sum := sha256.Sum256(image)
	return append(image, sum[:]...)
}

// FlipBits inverts one to three bits in used bytes.
func FlipBits(r *rand.Rand, image []byte) {
	for range 1 + r.IntN(3) {
		image[randomByte(r, image)] ^= 1 << r.IntN(8)
	}
}

// randomByte returns the index of a nonzero byte: most of a page is unused.
func randomByte(r *rand.Rand, image []byte) int {
	for {
		if at := r.IntN(len(image)); image[at] != 0 {
			return at
		}
	}
}

// ZeroBytes clears up to 512 bytes.
func ZeroBytes(r *rand.Rand, image []byte) {
	at := randomByte(r, image)
	clear(image[at:min(at+1+r.IntN(512), len(image))])
}

// SplicePage overwrites one page with another, with either page number.
func SplicePage(r *rand.Rand, image []byte) {
	pages := len(image) / PageSize
	from, to := r.IntN(pages), r.IntN(pages)
	copy(image[to*PageSize:(to+1)*PageSize], bytes.Clone(image[from*PageSize:(from+1)*PageSize]))
	if r.IntN(4) > 0 {
		le.PutUint64(image[to*PageSize:], uint64(to))
	}
}

// many flips bits in a hundred places.
func many(r *rand.Rand, image []byte) {
	for range 100 {
		FlipBits(r, image)
	}
}

// cut shortens the image, in half of the cases at a page.
func cut(r *rand.Rand, image []byte) []byte {
	at := r.IntN(len(image))
	if r.IntN(2) == 0 {
		at -= at % PageSize
	}
	return image[:at]
}

// shift moves the bytes after a position, like a transfer in text mode.
func shift(r *rand.Rand, image []byte) []byte {
	at, n := r.IntN(len(image)), 1+r.IntN(16)
	if r.IntN(2) == 0 {
		return slices.Delete(image, at, min(at+n, len(image)))
	}
	return slices.Insert(image, at, make([]byte, n)...)
}
