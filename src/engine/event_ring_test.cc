#include "engine/internal/event_ring.h"

#include "gtest/gtest.h"

namespace headrace {
namespace {

TokenEvent token(TokenId id) {
  TokenEvent event;
  event.token.token = id;
  return event;
}

TokenEvent last() {
  TokenEvent event;
  event.finish = FinishReason::kLength;
  return event;
}

TEST(EventRing, SaysWhenItIsFullAndHasRoomWhenHalfIsRead) {
  EventRing ring(4);
  EXPECT_TRUE(ring.push(token(1)));
  EXPECT_TRUE(ring.push(token(2)));
  EXPECT_TRUE(ring.push(token(3)));
  EXPECT_FALSE(ring.push(token(4)));
  EXPECT_FALSE(ring.has_room());
  EXPECT_EQ(ring.poll().event->token.token, 1);
  EXPECT_FALSE(ring.has_room());
  const EventRing::Polled polled = ring.poll();
  EXPECT_EQ(polled.event->token.token, 2);
  EXPECT_TRUE(polled.made_room);
  EXPECT_TRUE(ring.has_room());
  EXPECT_FALSE(ring.poll().made_room);
}

TEST(EventRing, TheLastEventAlwaysFits) {
  EventRing ring(1);
  EXPECT_FALSE(ring.push(token(1)));
  ring.push(last());
  EXPECT_TRUE(ring.ended());
  EXPECT_FALSE(ring.poll().made_room);  // no one waits for it any more
  EXPECT_TRUE(ring.poll().event->finish);
}

TEST(EventRing, WakesOnceForEachSleep) {
  EventRing ring(8);
  int num_wakes = 0;
  ring.set_waker([&] { ++num_wakes; });
  ring.push(token(1));
  EXPECT_EQ(num_wakes, 0);  // the reader has not looked yet
  EXPECT_TRUE(ring.poll().event);
  EXPECT_FALSE(ring.poll().event);
  ring.push(token(2));
  ring.push(token(3));
  EXPECT_EQ(num_wakes, 1);
  ring.set_waker({});
  EXPECT_TRUE(ring.poll().event);
  EXPECT_TRUE(ring.poll().event);
  EXPECT_FALSE(ring.poll().event);
  ring.push(last());
  EXPECT_EQ(num_wakes, 1);
}

TEST(EventRingDeathTest, NothingComesAfterTheLastEvent) {
  EventRing ring(4);
  ring.push(last());
  EXPECT_DEATH(ring.push(token(1)), "ended_");
}

}  // namespace
}  // namespace headrace
