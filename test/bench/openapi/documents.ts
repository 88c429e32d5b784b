/** Real OpenAPI documents in npm packages, from small to very large. */

export interface BenchDocument {
  /** npm package with an exact version. */
  readonly package: string
  /** Path inside the package. */
  readonly path: string
}

const examples = '@readme/oas-examples@8.2.2'
const github = '@octokit/openapi@23.0.2'

export const documents: readonly BenchDocument[] = [
  { package: examples, path: '2.0/json/petstore.json' },
  { package: examples, path: '3.0/json/schema-circular.json' },
  { package: examples, path: '3.0/yaml/discriminators.yaml' },
  { package: examples, path: '3.0/yaml/petstore.yaml' },
  { package: examples, path: '3.1/yaml/petstore.yaml' },
  { package: examples, path: '3.0/yaml/polymorphism.yaml' },
  { package: examples, path: '3.0/yaml/request-examples.yaml' },
  { package: examples, path: '3.0/yaml/parameters-style.yaml' },
  { package: examples, path: '3.1/yaml/schema-types.yaml' },
  { package: examples, path: '3.1/yaml/train-travel.yaml' },
  { package: '@scalar/galaxy@0.6.12', path: 'dist/3.1.yaml' },
  { package: '@shipengine/connect-fulfillment-provider-api@4.6.0', path: 'spec.yaml' },
  { package: '@directus/specs@15.2.0', path: 'dist/openapi.json' },
  { package: examples, path: '3.0/yaml/star-trek.yaml' },
  { package: '@okta/openapi@2.15.0', path: 'dist/spec.yaml' },
  { package: '@digdir/dialogporten-schema@1.118.6', path: 'swagger.verified.json' },
  { package: examples, path: '3.1/yaml/readme.yaml' },
  { package: '@blockfrost/openapi@0.1.93', path: 'openapi.yaml' },
  { package: '@ideal-postcodes/openapi@4.21.0', path: 'dist/openapi.json' },
  { package: '@octokit/openapi-webhooks@12.1.0', path: 'generated/api.github.com.json' },
  { package: github, path: 'generated/ghes-3.19.json' },
  { package: github, path: 'generated/api.github.com.json' },
]
