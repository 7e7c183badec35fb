package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

func runFranzGo(topic string, s settings, h *handler) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(s.BootstrapServers),
		kgo.ClientID(s.ClientID),
		kgo.ConsumerGroup(s.GroupID),
		kgo.ConsumeTopics(topic),
		kgo.SessionTimeout(ms(s.SessionTimeout)),
		kgo.HeartbeatInterval(ms(s.Heartbeat)),
		kgo.AutoCommitInterval(ms(s.AutoCommit)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	check(err)
	polling, stop := context.WithCancel(context.Background())
	go func() {
		<-h.closed
		stop()
	}()
	for polling.Err() == nil {
		client.PollFetches(polling).EachRecord(func(*kgo.Record) { h.handle() })
	}
	client.Close()
}
