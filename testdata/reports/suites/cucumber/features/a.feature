Feature: Orders
  Scenario: adds
    Given one
  Scenario: fails
    Given broken
  Scenario: second try
    Given flaky
  Scenario: undefined step
    Given nobody knows
  Scenario Outline: each <x>
    Given number <x>
    Examples:
      | x |
      | 1 |
      | 2 |
  @skip
  Scenario: pending
    Given pending
