@shop
Feature: Orders

  Background:
    Given a basket

  Scenario: adds up
    When two cups are ordered
    Then the total is 1250

  Scenario: keeps the discount
    When two cups are ordered
    Then the total is 1350

  Scenario: passes on the second try
    When the service answers on the second try

  Scenario: the step is missing
    When nobody wrote this step

  Scenario: is pending
    When the printer is attached

  Scenario: is skipped
    When the test skips itself
    Then the total is 1250

  Scenario: never ends
    When the service never answers

  Scenario Outline: each <sku>
    Then the price of "<sku>" is <cents>
    Examples:
      | sku | cents |
      | A1  | 625   |
      | B2  | 1     |

  Scenario Outline: the same name
    Then the price of "<sku>" is <cents>
    Examples:
      | sku | cents |
      | A1  | 625   |
      | B2  | 1     |

  Rule: members get a discount
    Scenario: adds up
      When two cups are ordered
      Then the total is 1250
