"""Speed as ratios against named yardsticks, one file per question. Never timed tests."""
