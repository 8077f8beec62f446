*** Settings ***
Test Setup       Log    ready
Library          Collections

*** Test Cases ***
Adds Up
    [Tags]    smoke
    Should Be Equal As Integers    ${1250}    1250

Keeps The Discount / With Slash
    Log    about to compare
    Should Be Equal As Integers    ${1250}    1350    cents

Two Failures
    Run Keyword And Continue On Failure    Fail    first
    Fail    second

Is Skipped
    Skip    no printer

Takes Too Long
    [Timeout]    200 milliseconds
    Sleep    5 seconds

Fails After
    No Operation
    [Teardown]    Fail    the printer is on fire
