package main

import (
	"context"

	"github.com/IBM/sarama"
)

type claims struct{ h *handler }

func (claims) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (claims) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (c claims) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-session.Context().Done():
			return nil
		case record, isOpen := <-claim.Messages():
			if !isOpen {
				return nil
			}
			c.h.handle()
			session.MarkMessage(record, "")
		}
	}
}

func runSarama(topic string, s settings, h *handler) {
	config := sarama.NewConfig()
	config.ClientID = s.ClientID
	config.Consumer.Group.Session.Timeout = ms(s.SessionTimeout)
	config.Consumer.Group.Heartbeat.Interval = ms(s.Heartbeat)
	config.Consumer.Offsets.AutoCommit.Interval = ms(s.AutoCommit)
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	group, err := sarama.NewConsumerGroup([]string{s.BootstrapServers}, s.GroupID, config)
	check(err)
	consuming, stop := context.WithCancel(context.Background())
	go func() {
		<-h.closed
		stop()
	}()
	for consuming.Err() == nil {
		_ = group.Consume(consuming, []string{topic}, claims{h})
	}
	check(group.Close())
}
