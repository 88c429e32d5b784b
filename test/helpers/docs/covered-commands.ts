/**
 * Commands of the guides that no session runs word for word. Another test covers the command with other values, or no
 * test can run it. docs/evidence/verification.md lists the commands that no test can run.
 */

export interface CoveredCommand {
  /** The whole command, or its start followed by `…`. */
  readonly command: string
  /** Path of the test. */
  readonly test: string
  /** Text at the place in the test that covers the command. */
  readonly contains: string
}

export interface ExcludedCommand {
  /** The whole command, or its start followed by `…`. */
  readonly command: string
  readonly reason: string
}

/** Returns true if a row's `command` is this command, or its start followed by `…`. */
export function matchesCommand(row: { readonly command: string }, text: string): boolean {
  return row.command.endsWith('…') ? text.startsWith(row.command.slice(0, -1)) : text === row.command
}

const registry = 'test/e2e/release/registry.test.ts'

/** By the name of the page. */
export const coveredCommands: Readonly<Record<string, readonly CoveredCommand[]>> = {
  README: [
    {
      command: 'make package && npm install --global ./gatehouse-0.1.0.tgz',
      test: 'test/e2e/release/first-call.test.ts',
      contains: "'install', '--global'",
    },
    {
      command: 'make run',
      test: 'test/unit/release/make-run.test.ts',
      contains: "dryRun(t, 'run')",
    },
  ],
  install: [
    {
      command: 'helm install gatehouse oci://…',
      test: registry,
      contains: "installCommands('docs/guides/install.md')",
    },
    {
      command: 'helm package manifests/chart --destination /tmp',
      test: registry,
      contains: "helm(['package'",
    },
    { command: 'helm push /tmp/gatehouse-0.1.0.tgz…', test: registry, contains: "helm(['push'" },
    {
      command: 'helm install gatehouse manifests/chart…',
      test: 'test/e2e/kube/helm-release.test.ts',
      contains: 'a shared Metacontroller replaces',
    },
    {
      command: 'kubectl create -f manifests/chart/charts/metacontroller-definitions/crds',
      test: 'test/e2e/kube/install.test.ts',
      contains: 'its commands install everything',
    },
    {
      command: 'kubectl apply -k manifests/overlays/everything',
      test: 'test/e2e/kube/install.test.ts',
      contains: 'its commands install everything',
    },
    {
      command: 'kubectl delete validatingwebhookconfiguration,compositecontrollers…',
      test: 'test/e2e/kube/install.test.ts',
      contains: 'If you deleted the namespace first',
    },
  ],
  dev: [
    {
      command: 'gatehouse tools list hub',
      test: 'test/e2e/dev/causes.test.ts',
      contains: "gatehouse('tools', 'list', 'hub')",
    },
  ],
  up: [
    {
      command: 'gatehouse up',
      test: 'test/behaviour/up/up.test.ts',
      contains: 'Ctrl-C of the foreground',
    },
    {
      command: 'gatehouse up --login',
      test: 'test/behaviour/up/up-login.test.ts',
      contains: 'startUpLogin(t)',
    },
    {
      command: 'gatehouse up --login https://login.example.com/realms/team…',
      test: 'test/behaviour/up/up-login-issuer.test.ts',
      contains: "'--login-client-id'",
    },
  ],
  proxy: [
    {
      command:
        'gatehouse proxy --target-uri https://mcp.example.com --remote-auth --remote-auth-grant client_credentials…',
      test: 'test/behaviour/proxy/login/machine.test.ts',
      contains: 'remoteAuthPrivateKeyFile',
    },
    {
      command:
        'gatehouse proxy --target-uri https://mcp.example.com --remote-auth --remote-auth-grant jwt-bearer…',
      test: 'test/behaviour/proxy/login/workload.test.ts',
      contains: 'remoteAuthAssertionFile',
    },
    {
      command:
        'gatehouse proxy --target-uri https://mcp.example.com --remote-auth --remote-auth-grant id-jag…',
      test: 'test/e2e/authserver/identity-assertions.test.ts',
      contains: "'remote-auth-id-token-file'",
    },
    {
      command: 'gatehouse token --server https://mcp.example.com/mcp --assertion-file…',
      test: 'test/behaviour/cli/token-workload.test.ts',
      contains: "world.server, '--assertion-file'",
    },
    {
      command: 'gatehouse token --server https://mcp.example.com/mcp --github',
      test: 'test/behaviour/cli/token-workload.test.ts',
      contains: "world.server, '--github'",
    },
  ],
  'virtual-server': [
    {
      command: 'gatehouse explain --url…',
      test: 'test/behaviour/explain/command.test.ts',
      contains: "'explain', '--url'",
    },
  ],
  'authorization-server': [
    {
      command: 'gatehouse vmcp serve --config manifests/local-login/vmcp.yaml',
      test: 'test/e2e/docs/local-login.test.ts',
      contains: 'Try it on one machine',
    },
    {
      command: 'gatehouse tools list http://127.0.0.1:4483/mcp --remote-auth',
      test: 'test/e2e/docs/local-login.test.ts',
      contains: 'Try it on one machine',
    },
    {
      command: 'curl --cert agent.crt…',
      test: 'test/e2e/authserver/client-certificates.test.ts',
      contains: 'client: presented, form',
    },
    {
      command: 'curl -u "nightly-report:$SECRET"…',
      test: 'test/e2e/authserver/machines-replicas.test.ts',
      contains: 'new ClientCredentialsProvider(',
    },
    {
      command: 'curl https://reports.example.com/oauth/token -d grant_type=client_credentials…',
      test: 'test/e2e/authserver/machines-replicas.test.ts',
      contains: 'new PrivateKeyJwtProvider(',
    },
    {
      command: 'curl -u "triage-agent:$SECRET"…',
      test: 'test/behaviour/authserver/tokens/token-exchange.test.ts',
      contains: 'openid.ClientSecretBasic(',
    },
    {
      command:
        'curl https://reports.example.com/oauth/token --data-urlencode grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer…',
      test: 'test/behaviour/authserver/tokens/jwt-bearer.test.ts',
      contains: 'a ServiceAccount gets a token for itself',
    },
  ],
  policies: [
    {
      command: 'gatehouse policy test…',
      test: 'test/behaviour/policy/command.test.ts',
      contains: "'policy', 'test', '-f'",
    },
    {
      command: 'gatehouse explain -f…',
      test: 'test/behaviour/explain/command.test.ts',
      contains: "'explain', '-f'",
    },
    {
      command: 'gatehouse explain --url…',
      test: 'test/behaviour/explain/command.test.ts',
      contains: "'explain', '--url'",
    },
    {
      command: 'gatehouse policy replay…',
      test: 'test/behaviour/policy/replay-command.test.ts',
      contains: "'policy', 'replay', '--audit'",
    },
  ],
  'tool-pinning': [
    {
      command: 'gatehouse lock -f manifests/ -o locks/',
      test: 'test/e2e/lock.test.ts',
      contains: "'lock', '-f', path, '-o', path",
    },
    {
      command: 'gatehouse lock -f manifests/ -f locks/ --check',
      test: 'test/e2e/lock.test.ts',
      contains: "'lock', '-f', path, '--check'",
    },
    {
      command: 'gatehouse vmcp serve --config vmcp.yaml --pin-first locks/',
      test: 'test/behaviour/proxy/pin-first.test.ts',
      contains: 'vmcp serve: one file for each backend',
    },
    {
      command: 'gatehouse dev -f manifests/ --pin-first locks/',
      test: 'test/behaviour/proxy/pin-first.test.ts',
      contains: 'startDev(t, [group()',
    },
  ],
}

const images = '`test/e2e/images.test.ts` assembles both images and runs them'
const kindTool = 'needs kind and a Docker daemon'
const forward = 'the test node does not forward ports'
const example = 'the address is an example'

/** By the name of the page. */
export const excludedCommands: Readonly<Record<string, readonly ExcludedCommand[]>> = {
  README: [{ command: 'make test', reason: 'runs all tests, including the tests of these commands' }],
  install: [
    { command: 'docker build…', reason: `needs a Docker daemon; ${images}` },
    {
      command: 'docker push…',
      reason: `needs a Docker daemon; \`${registry}\` pushes both images to a registry`,
    },
  ],
  kind: [
    { command: 'kind create cluster…', reason: kindTool },
    { command: 'make images…', reason: `needs Docker, Podman or Buildah; ${images}` },
    { command: 'kind load docker-image…', reason: kindTool },
    {
      command: 'gatehouse cluster connect quickstart',
      reason: `${forward}; \`test/e2e/kube/kubectl-plugin.test.ts\` checks the arguments for kubectl`,
    },
    { command: 'kind delete cluster…', reason: kindTool },
  ],
  'quickstart-cluster': [{ command: 'kubectl port-forward…', reason: forward }],
  clients: [{ command: 'gatehouse run --url sentry=…', reason: 'needs an account of another service' }],
  proxy: [{ command: 'curl -H "Authorization: Bearer $TOKEN"…', reason: example }],
  shell: [{ command: 'gatehouse tools list https://mcp.example.com/mcp', reason: example }],
}
