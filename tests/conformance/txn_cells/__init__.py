"""What Apache Kafka answers to every request, in every state of a transactional id: recorded, and asked of ours."""
