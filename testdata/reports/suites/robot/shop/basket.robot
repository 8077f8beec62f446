*** Settings ***
Suite Setup      Fail    the database is not up

*** Test Cases ***
Never Starts
    No Operation

Adds Up
    No Operation
