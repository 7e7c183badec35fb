// One member of the lab, in the library that the first argument names. The second argument is the topic, the third the
// settings as JSON.
//
// Orders are lines on standard input: "leave" closes the member, "block SECONDS" makes its handler wait before the next
// record. When standard input ends, the lab has ended, and the program exits at once.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// settings of one member; times are in milliseconds. The other settings are the library's defaults.
type settings struct {
	BootstrapServers string `json:"bootstrap_servers"`
	GroupID          string `json:"group_id"`
	ClientID         string `json:"client_id"`
	SessionTimeout   int    `json:"session_timeout_ms"`
	Heartbeat        int    `json:"heartbeat_interval_ms"`
	AutoCommit       int    `json:"auto_commit_interval_ms"`
}

// handler is passed by every record; a member whose handler is blocked waits in it.
type handler struct {
	blocked sync.RWMutex
	closed  chan struct{}
}

func (h *handler) handle() {
	h.blocked.RLock()
	h.blocked.RUnlock()
}

func (h *handler) obeyOrders() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		order := strings.Fields(lines.Text())
		switch order[0] {
		case "leave":
			close(h.closed)
		case "block":
			pause, err := time.ParseDuration(order[1] + "s")
			check(err)
			h.blocked.Lock()
			time.Sleep(pause)
			h.blocked.Unlock()
		}
	}
	os.Exit(0)
}

func ms(count int) time.Duration { return time.Duration(count) * time.Millisecond }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	members := map[string]func(string, settings, *handler){
		"franz-go": runFranzGo, "kafka-go": runKafkaGo, "sarama": runSarama,
	}
	var s settings
	check(json.Unmarshal([]byte(os.Args[3]), &s))
	h := &handler{closed: make(chan struct{})}
	go h.obeyOrders()
	members[os.Args[1]](os.Args[2], s, h)
}
