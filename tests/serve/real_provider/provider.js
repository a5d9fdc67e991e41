// A real OpenID provider (npm's oidc-provider) for tests. Prints its port; POST /test/configure says what it is:
// {clients, accounts: {name: claims}, keys: [JWK], settings}. It is then built anew; sessions and grants stay.
import { createServer } from 'node:http';
import { once } from 'node:events';
import Provider from 'oidc-provider';

let provider;
const server = createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/test/configure') {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      configure(JSON.parse(Buffer.concat(parts).toString()));
      response.end('{}');
    });
  } else {
    provider.callback()(request, response);
  }
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const issuer = `http://127.0.0.1:${server.address().port}`;

function configure({ clients, accounts, keys, settings }) {
  provider = new Provider(issuer, {
    clients,
    jwks: { keys },
    cookies: { keys: ['for tests'] },
    scopes: ['openid', 'profile', 'email'],
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'], email: ['email'] },
    // its own agent refuses loopback addresses, which is where this test's Easel is told of a log-out
    fetch: (url, { dispatcher: _, ...options }) => fetch(url, options),
    features: { backchannelLogout: { enabled: true }, devInteractions: { enabled: true } },
    findAccount: (_context, name) =>
      accounts[name] && { accountId: name, claims: () => ({ sub: name, ...accounts[name] }) },
    ...settings,
  });
  provider.on('server_error', (_context, error) => console.error(error));
  provider.on('backchannel.error', (_context, error) => console.error(error));
}

console.log(server.address().port);
process.stdin.resume();
process.stdin.on('end', () => process.exit()); // whoever started it is gone
