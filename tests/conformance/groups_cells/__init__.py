"""What Apache Kafka answers to every request, in every state that a group can be in: recorded, and asked of ours."""
