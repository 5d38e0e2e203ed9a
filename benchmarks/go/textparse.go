// Parses a page of Prometheus text as a scrape of Prometheus does, and prints the CPU seconds of each of a number of times.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

// Labels and numbers of all samples of a page of which nothing is known.
func parse(page []byte) (int, error) {
	parser, err := textparse.New(page, "text/plain; version=0.0.4", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return 0, err
	}
	var series labels.Labels
	samples := 0
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return 0, err
		}
		if entry == textparse.EntrySeries {
			parser.Series()
			parser.Labels(&series)
			samples++
		}
	}
}

func main() {
	times, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	page, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	for range times {
		start := cpuSeconds()
		samples, err := parse(page)
		if err != nil {
			panic(err)
		}
		fmt.Println(samples, cpuSeconds()-start)
	}
}
