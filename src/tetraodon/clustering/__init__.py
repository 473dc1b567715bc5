"""k-means: from a noisy histogram, by noisy rounds, or over whole blocks; and trees over released counts."""
