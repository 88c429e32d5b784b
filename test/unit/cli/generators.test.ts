/** Secrets and ConfigMaps that a kustomization generates, for runs without kustomize. */
import t from 'tap'
import { generatedObjects } from '../../../runtime/toolkit/manifests/generators.ts'

t.test('generators: envs, literals and files, with their own names', async (t) => {
  const folder = t.testdir({
    'kustomization.yaml': `
secretGenerator:
  - name: s
    envs: [secrets.env]
    literals: ["b=two=2", 'quoted="x"']
    files: [cert.pem, ca=sub/ca.pem]
configMapGenerator:
  - name: c
    namespace: ns
    literals: [a=1]
`,
    'secrets.env': '# comment\n\nTOKEN=a=b \nEMPTY=\n',
    'cert.pem': 'CERT\n',
    sub: { 'ca.pem': 'CA\n', 'kustomization.yml': 'resources: []\n' },
    node_modules: { 'kustomization.yaml': 'secretGenerator: [{name: no}]\n' },
  })
  t.strictSame(generatedObjects([folder]), [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's' },
      stringData: { TOKEN: 'a=b ', EMPTY: '', b: 'two=2', quoted: '"x"', 'cert.pem': 'CERT\n', ca: 'CA\n' },
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', namespace: 'ns' }, data: { a: '1' } },
  ])
  t.strictSame(generatedObjects([`${folder}/secrets.env`]), [], 'a file is no folder')
})

t.test('generators: an unreadable file is named, and files outside the folder are rejected', async (t) => {
  const cases: Readonly<Record<string, RegExp>> = {
    'secretGenerator: [{envs: [a]}]': /a generator has no name$/,
    'secretGenerator: [{name: s, envs: [none.env]}]': /none\.env cannot be read: file not found$/,
    'secretGenerator: [{name: s, files: [../../x]}]': /\.\.\/\.\.\/x is outside the kustomization's folder$/,
    'secretGenerator: [{name: s, files: [/etc/hostname]}]':
      /\/etc\/hostname is outside the kustomization's folder$/,
    'a: [': /kustomization\.yaml:\d+: not valid YAML/,
  }
  for (const [text, message] of Object.entries(cases)) {
    const folder = t.testdir({ 'kustomization.yaml': text })
    t.throws(() => generatedObjects([folder]), { code: 'INVALID_CONFIG', message })
  }
})
