// The certified provider of OpenID Connect for examples/sign-in/check: any name and password sign in. Arguments: its port, the
// address of the installation, and a file whose lines are the groups of everybody.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [port, base, groups] = process.argv.slice(2);
const require = createRequire(`${process.env.ASSAY_OIDC_PROVIDER}/`);
const { Provider } = await import(pathToFileURL(require.resolve("oidc-provider")));

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{
    client_id: "assay",
    client_secret: "a secret: + and %",
    grant_types: ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
    response_types: ["code"],
    redirect_uris: [`${base}/login/callback`],
    post_logout_redirect_uris: [`${base}/login`],
  }],
  claims: { openid: ["sub"], groups: ["groups"] },
  scopes: ["openid", "groups"],
  // The claims of scopes are in the ID token, as at most providers of companies.
  conformIdTokenClaims: false,
  cookies: { keys: ["a key of this check"] },
  features: { deviceFlow: { enabled: true }, rpInitiatedLogout: { enabled: true } },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, groups: readFileSync(groups, "utf8").split("\n").filter(Boolean) }),
  }),
});
provider.listen(Number(port), "127.0.0.1");
