SELECT document_id, -distance AS score
FROM (SELECT document_id, weights <#> :'query' AS distance FROM documents ORDER BY distance LIMIT :k) AS nearest
WHERE distance < 0
ORDER BY distance;
