Feature: Tear-down

  @broken-after
  Scenario: fails after its steps
    Given a basket
