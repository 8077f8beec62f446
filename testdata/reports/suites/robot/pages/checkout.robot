*** Settings ***
Library           SeleniumLibrary    run_on_failure=Capture Page Screenshot
Library           OperatingSystem
Library           Process
Suite Teardown    Close All Browsers

*** Variables ***
${PAGE}           data:text/html,<title>Shop</title><h1>Basket</h1><p id=total>41.00 EUR</p>

*** Test Cases ***
Shows the total
    Open the shop
    Element Text Should Be    id:total    42.00 EUR

Sends a receipt
    ${result} =    Run Process    sh    -c    echo sending; echo no route to mail >&2; exit 3
    Log    ${result.stdout}
    Log    ${result.stderr}    WARN
    Create File    ${OUTPUT DIR}/mail.log    no route to mail
    Log    Saved <a href="mail.log">mail.log</a>, see <a href="https://shop.example.org/mail?id=7&amp;all=1">the outbox</a>    html=True
    Should Be Equal As Integers    ${result.rc}    0

Opens the shop
    Open the shop
    Capture Page Screenshot

*** Keywords ***
Open the shop
    ${options} =    Evaluate    selenium.webdriver.ChromeOptions()    modules=selenium.webdriver
    FOR    ${argument}    IN    --headless=new    --no-sandbox    --window-size=360,240
        Call Method    ${options}    add_argument    ${argument}
    END
    Open Browser    ${PAGE}    Chrome    options=${options}
