/**
 * Commands of the guides that no session runs word for word: another test covers them with other values, or they cannot
 * run on a test machine. docs/evidence/verification.md lists the commands that cannot run.
 */

export interface Covered {
  /** Start of the command in the page. */
  readonly command: string
  /** Test that covers it. */
  readonly test: string
  /** Text in the test that shows the coverage. */
  readonly contains: string
}

export interface NotRun {
  readonly command: string
  readonly reason: string
}

const registry = 'test/e2e/release/registry.test.ts'

export const covered: Readonly<Record<string, readonly Covered[]>> = {
  README: [
    {
      command: 'make package && npm install --global ./gatehouse-0.1.0.tgz',
      test: 'test/e2e/release/first-call.test.ts',
      contains: "'install', '--global'",
    },
  ],
  install: [
    {
      command: 'helm install gatehouse oci://',
      test: registry,
      contains: "installCommands('docs/guides/install.md')",
    },
    { command: 'helm package manifests/chart', test: registry, contains: "helm(['package'" },
    { command: 'helm push gatehouse-0.1.0.tgz', test: registry, contains: "helm(['push'" },
    {
      command: 'helm install gatehouse manifests/chart',
      test: 'test/e2e/kube/helm-release.test.ts',
      contains: 'metacontroller.enabled=false',
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
      command: 'kubectl delete validatingwebhookconfiguration,compositecontrollers',
      test: 'test/e2e/kube/install.test.ts',
      contains: 'If you deleted the namespace first',
    },
  ],
  kind: [
    {
      command: 'gatehouse cluster connect quickstart',
      test: 'test/e2e/kube/kubectl-plugin.test.ts',
      contains: 'connect',
    },
  ],
  dev: [
    {
      command: 'gatehouse tools list hub',
      test: 'test/e2e/dev/causes.test.ts',
      contains: '2 of 3 backends are down',
    },
  ],
  up: [
    {
      command: 'gatehouse up --login',
      test: 'test/behaviour/up/up-login-issuer.test.ts',
      contains: '--login',
    },
    { command: 'gatehouse up', test: 'test/recording/up.ts', contains: 'gatehouse up' },
  ],
  proxy: [
    {
      command:
        'gatehouse proxy --target-uri https://mcp.example.com --remote-auth --remote-auth-grant client_credentials',
      test: 'test/behaviour/proxy/login/machine.test.ts',
      contains: 'client_credentials',
    },
    {
      command:
        'gatehouse proxy --target-uri https://mcp.example.com --remote-auth --remote-auth-grant jwt-bearer',
      test: 'test/behaviour/proxy/login/workload.test.ts',
      contains: 'jwt-bearer',
    },
    {
      command:
        'gatehouse proxy --target-uri https://mcp.example.com --remote-auth --remote-auth-grant id-jag',
      test: 'test/behaviour/proxy/login/identity-assertion.test.ts',
      contains: 'id-jag',
    },
    {
      command: 'gatehouse token --server https://mcp.example.com/mcp',
      test: 'test/behaviour/cli/token-workload.test.ts',
      contains: '--github',
    },
  ],
  'virtual-server': [
    {
      command: 'gatehouse explain --url',
      test: 'test/behaviour/explain/command.test.ts',
      contains: '--url',
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
      command: 'curl --cert agent.crt',
      test: 'test/e2e/authserver/client-certificates.test.ts',
      contains: 'client_credentials',
    },
    {
      command: 'curl -u "nightly-report:$SECRET"',
      test: 'test/e2e/authserver/machines.test.ts',
      contains: 'client_credentials',
    },
    {
      command: 'curl https://reports.example.com/oauth/token -d grant_type=client_credentials',
      test: 'test/e2e/authserver/machines-replicas.test.ts',
      contains: 'private_key_jwt',
    },
    {
      command: 'curl -u "triage-agent:$SECRET"',
      test: 'test/e2e/authserver/delegation-replicas.test.ts',
      contains: 'subject_token',
    },
    {
      command:
        'curl https://reports.example.com/oauth/token --data-urlencode grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer',
      test: 'test/behaviour/authserver/tokens/jwt-bearer.test.ts',
      contains: 'jwt-bearer',
    },
  ],
  policies: [
    { command: 'gatehouse policy test', test: 'test/behaviour/policy/command.test.ts', contains: "'test'" },
    { command: 'gatehouse explain -f', test: 'test/behaviour/explain/command.test.ts', contains: '--state' },
    { command: 'gatehouse explain --url', test: 'test/behaviour/explain/command.test.ts', contains: '--url' },
    {
      command: 'gatehouse policy replay',
      test: 'test/behaviour/policy/replay-command.test.ts',
      contains: "'replay'",
    },
  ],
  'tool-pinning': [
    { command: 'gatehouse lock -f manifests/', test: 'test/e2e/lock.test.ts', contains: '--check' },
    {
      command: 'gatehouse vmcp serve --config vmcp.yaml --pin-first',
      test: 'test/behaviour/proxy/pin-first.test.ts',
      contains: "'vmcp'",
    },
    {
      command: 'gatehouse dev -f manifests/ --pin-first',
      test: 'test/behaviour/proxy/pin-first.test.ts',
      contains: 'startDev(t, [group()',
    },
  ],
}

const docker = 'needs a Docker daemon; `test/e2e/images.test.ts` assembles both images and runs them'
const kindTool = 'needs kind and a Docker daemon'
const forward = 'the test node does not forward ports'
const example = 'the address is an example'

export const notRun: Readonly<Record<string, readonly NotRun[]>> = {
  install: [
    { command: 'docker build', reason: docker },
    { command: 'docker push', reason: docker },
  ],
  kind: [
    { command: 'kind create cluster', reason: kindTool },
    { command: 'make images', reason: docker },
    { command: 'kind load docker-image', reason: kindTool },
    { command: 'kind delete cluster', reason: kindTool },
  ],
  'quickstart-cluster': [{ command: 'kubectl port-forward', reason: forward }],
  clients: [{ command: 'gatehouse run --url sentry=', reason: 'needs an account of another service' }],
  proxy: [{ command: 'curl -H "Authorization: Bearer $TOKEN"', reason: example }],
  shell: [{ command: 'gatehouse tools list https://mcp.example.com/mcp', reason: example }],
}
