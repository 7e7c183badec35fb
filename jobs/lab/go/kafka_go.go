package main

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"
)

func runKafkaGo(topic string, s settings, h *handler) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:           []string{s.BootstrapServers},
		Dialer:            &kafka.Dialer{ClientID: s.ClientID, Timeout: 10 * time.Second},
		GroupID:           s.GroupID,
		Topic:             topic,
		SessionTimeout:    ms(s.SessionTimeout),
		HeartbeatInterval: ms(s.Heartbeat),
		CommitInterval:    ms(s.AutoCommit),
		StartOffset:       kafka.FirstOffset,
		MaxWait:           500 * time.Millisecond,
	})
	reading, stop := context.WithCancel(context.Background())
	go func() {
		<-h.closed
		stop()
	}()
	for reading.Err() == nil {
		record, err := reader.FetchMessage(reading)
		if err != nil {
			continue
		}
		h.handle()
		_ = reader.CommitMessages(reading, record)
	}
	check(reader.Close())
}
