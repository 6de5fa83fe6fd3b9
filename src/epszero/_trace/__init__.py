"""All readers of traced functions: degrees, features, dependence, intervals."""
