package redis

import (
	"context"
	"strings"

	"github.com/redis/rueidis"
)

const slots = 16384

// A division records which slots of a cluster were on one master when the store was opened. It is not updated when slots move.
// A breaker may then open for too many or too few keys, which costs time only.
type division struct {
	part  [slots]uint16
	parts int // 1 without a cluster
}

// divide asks a cluster for the slots of its masters.
func divide(ctx context.Context, client rueidis.Client) *division {
	d := &division{parts: 1}
	if client.Mode() != rueidis.ClientModeCluster {
		return d
	}
	ranges, err := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return d
	}
	masters := map[string]uint16{}
	for _, r := range ranges {
		fields, err := r.ToArray()
		if err != nil || len(fields) < 3 {
			continue
		}
		first, errFirst := fields[0].AsInt64()
		last, errLast := fields[1].AsInt64()
		master, errMaster := fields[2].ToArray()
		if errFirst != nil || errLast != nil || errMaster != nil || len(master) < 3 {
			continue
		}
		id, err := master[2].ToString()
		if err != nil {
			continue
		}
		n, known := masters[id]
		if !known {
			n = uint16(len(masters))
			masters[id] = n
		}
		for i := max(first, 0); i <= min(last, slots-1); i++ {
			d.part[i] = n
		}
	}
	d.parts = max(len(masters), 1)
	return d
}

// of returns the part of a key of Redis.
func (d *division) of(key string) int {
	if d.parts == 1 {
		return 0
	}
	return int(d.part[slotOf(key)])
}

// slotOf returns the slot of a key. If the first braces of the key contain text, that text alone determines the slot.
func slotOf(key string) uint16 {
	if _, after, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(after, "}"); closed && tag != "" {
			key = tag
		}
	}
	crc := uint16(0) // CRC-16/XMODEM
	for i := range len(key) {
		crc = crc<<8 ^ crcOf[byte(crc>>8)^key[i]]
	}
	return crc % slots
}

var crcOf = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
