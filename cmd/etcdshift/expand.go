package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/snapshot"
)

// maxExpandFlag is on every command that reads a snapshot, which may be compressed.
func maxExpandFlag() cli.Flag {
	return &cli.StringFlag{
		Name:  "max-expand",
		Usage: fmt.Sprintf("expand a compressed snapshot to no more than `SIZE`, such as 20GiB (default: %dGiB)", snapshot.DefaultMaxExpand>>30),
		Action: func(c *cli.Context, given string) error {
			if _, err := parseSize(given); err != nil {
				return usagef(commandPath(c), "--max-expand: %w", err)
			}
			return nil
		},
	}
}

// snapshotConfig is how a command opens its inputs.
func snapshotConfig(c *cli.Context) snapshot.Config {
	n, _ := parseSize(c.String("max-expand")) // 0, which is the default, where the flag is not given; it was judged before the command ran
	return snapshot.Config{MaxExpand: n}
}

// parseSize reads a number of bytes as people write it: 1000000, 500MB, 20GiB, 20Gi. Units with an i count by 1024, the others by
// 1000, as in Kubernetes.
func parseSize(text string) (int64, error) {
	digits := strings.TrimRightFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseUint(digits, 10, 63)
	factor := unitFactor(strings.ToLower(text[len(digits):]))
	if err != nil || n == 0 || factor == 0 {
		return 0, fmt.Errorf("%q is no size; it takes a number of bytes, such as 500MB or 20GiB", text)
	}
	if n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return int64(n * factor), nil
}

// unitFactor is how many bytes a unit in lower case has, 0 for what is none.
func unitFactor(unit string) uint64 {
	if unit == "" || unit == "b" {
		return 1
	}
	base := uint64(1000)
	name, binary := strings.CutSuffix(strings.TrimSuffix(unit, "b"), "i")
	if binary {
		base = 1024
	}
	factor := base
	for _, known := range []string{"k", "m", "g", "t"} {
		if name == known {
			return factor
		}
		factor *= base
	}
	return 0
}
