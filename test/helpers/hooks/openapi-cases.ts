/** The golden cases of REST services: the kind MCPOpenAPIServer, and virtual servers with such members. */
import { auth, configMap, entry, openApi, petstore, virtual, world } from '../../hooks/resources.ts'
import { servingCertificate } from '../../hooks/serving-certificate.ts'
import { secret, type Stored, World } from '../../hooks/world.ts'

const document = (text = petstore) => configMap('petstore', { 'openapi.json': text })
const pets = (spec: object = {}) => openApi('pets', spec)
const remoteDocument = { document: { url: 'https://pets.example.com/openapi.json', sha256: '0'.repeat(64) } }
const everything = {
  allowPrivateEndpoint: true,
  externalAuthConfigRef: { name: 'header' },
  caBundleRef: { configMapRef: { name: 'anchors' } },
  clientCertificateSecretRef: { name: 'remote-client' },
  headerForward: {
    addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 'tokens', key: 'api' } }],
  },
  operations: { include: [{ methods: ['GET'] }], exclude: [{ tags: ['internal'] }] },
  apiKeyQuery: { header: 'X-Key', parameter: 'api_key' },
  overrides: { listPets: { title: 'List the pets' } },
  response: { fields: ['data'], maxBytes: 65_536, timeout: '20s', output: 'off' },
}
const references = [
  auth.header,
  configMap('anchors', { 'ca.crt': 'pem' }),
  secret('remote-client', servingCertificate),
]

const service =
  (object: Stored, ...others: Stored[]) =>
  () =>
    world(object, ...others)
      .settle()
      .request('MCPOpenAPIServer', 'pets')
const door = (w: World) => w.request('VirtualMCPServer', 'door')

export const openApiCases: Readonly<Record<string, () => Record<string, unknown>>> = {
  'MCPOpenAPIServer/valid': service(pets(everything), document(), ...references),
  'MCPOpenAPIServer/document-missing': service(pets()),
  'MCPOpenAPIServer/key-missing': service(pets(), configMap('petstore', { 'other.json': petstore })),
  'MCPOpenAPIServer/document-invalid': service(pets(), document('{"swagger": "2.0"}')),
  'MCPOpenAPIServer/document-broken-later': () =>
    world(pets(), document())
      .settle()
      .apply(document('openapi: 3.0.0\nopenapi: 3.0.1'))
      .settle()
      .request('MCPOpenAPIServer', 'pets'),
  'MCPOpenAPIServer/url': service(pets(remoteDocument)),
  'MCPOpenAPIServer/url-not-usable': () => {
    const w = world(pets(remoteDocument), virtual()).ready()
    const message = 'the document URL returned HTTP 404'
    const problems = [{ type: 'openapi_document', backend: 'pets', message }]
    return w
      .setData('door-vmcp-status', { 'pod-1.json': JSON.stringify({ problems }) })
      .settle()
      .request('MCPOpenAPIServer', 'pets')
  },
  'MCPOpenAPIServer/loopback-address': service(
    pets({ baseUrl: 'http://127.0.0.1/v1', allowPrivateEndpoint: true }),
    document(),
  ),
  'MCPOpenAPIServer/group-missing': () =>
    new World().apply(pets(), document()).settle().request('MCPOpenAPIServer', 'pets'),
  'MCPOpenAPIServer/everything-missing': service(
    pets({
      externalAuthConfigRef: { name: 'nowhere' },
      caBundleRef: { configMapRef: { name: 'nowhere' } },
      clientCertificateSecretRef: { name: 'nowhere' },
      headerForward: {
        addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 'nowhere', key: 'api' } }],
      },
    }),
  ),
  'MCPGroup/openapi-members': () =>
    world(pets(), entry('search'), document()).settle().request('MCPGroup', 'tools'),
  'VirtualMCPServer/openapi': () =>
    door(
      world(
        pets(everything),
        openApi('billing', remoteDocument),
        document(),
        ...references,
        entry('search'),
        virtual(),
      ).ready(),
    ),
  'VirtualMCPServer/openapi-document-broken-later': () =>
    door(world(pets(), document(), virtual()).ready().apply(document('[]')).settle()),
  'VirtualMCPServer/openapi-document-invalid': () => door(world(pets(), document('[]'), virtual()).ready()),
}
